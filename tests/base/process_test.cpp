#include "base/process.h"

#include "base/file.h"
#include "support/catch.h"

#include <cstdlib>
#include <filesystem>

using namespace gputrain;
namespace fs = std::filesystem;

TEST_CASE("process: the time since its start grows from a little above 0", "[base]") {
  const double first = seconds_since_process_start();
  CHECK(first >= 0);
  CHECK(first < 3600);
  CHECK(seconds_since_process_start() >= first);
}

TEST_CASE("process: without /proc, or with nonsense in it, no time has passed", "[base]") {
  CHECK(seconds_since_process_start("/no/such/stat") == 0);
  std::string folder = (fs::temp_directory_path() / "gputrain-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  for (const char* text : {"", "1 (name) S 2", "no name"}) {
    write_atomically(fs::path(folder) / "stat", text);
    CHECK(seconds_since_process_start(folder + "/stat") == 0);
  }
  fs::remove_all(folder);
}
