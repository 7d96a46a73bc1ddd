#include "recipe/read_as_fuzzed.h"
#include "support/catch.h"
#include "support/paths.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace gputrain;

TEST_CASE("corpus: what the fuzzer starts from is read or refused, and never throws", "[recipe]") {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_path() + "/tests/recipe/corpus")) {
    CAPTURE(entry.path());
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    CHECK_NOTHROW(read_as_fuzzed(text.str()));
    ++files;
  }
  CHECK(files >= 8);
}
