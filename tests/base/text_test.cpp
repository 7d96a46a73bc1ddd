#include "base/text.h"

#include "support/catch.h"

#include <cmath>
#include <limits>

using namespace gputrain;

TEST_CASE("text: join puts the last separator before the last part", "[base]") {
  CHECK(join({}, ", ", " or ").empty());
  CHECK(join({"a"}, ", ", " or ") == "a");
  CHECK(join({"a", "b", "c"}, ", ", " or ") == "a, b or c");
  CHECK(join({"a", "b", "c"}, ", ") == "a, b, c");
}

TEST_CASE("text: shortest writes the fewest digits that read back the same", "[base]") {
  CHECK(shortest(0.1) == "0.1");
  CHECK(shortest(1.0) == "1");
  CHECK(shortest(1e-5) == "1e-05");
  CHECK(shortest(0.1 + 0.2) == "0.30000000000000004");
  CHECK(shortest(-std::numeric_limits<double>::max()) == "-1.7976931348623157e+308");
  CHECK(shortest(std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(shortest(std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0)) == "nan");
}

TEST_CASE("text: edit distance counts a swap of neighbours as one edit", "[base]") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("decya", "decay") == 1);
  CHECK(edit_distance("ca", "abc") == 3);
  CHECK(edit_distance("same", "same") == 0);
}

TEST_CASE("text: the nearest word is one that may have been meant, or none", "[base]") {
  const std::vector<std::string> keys = {"lr", "momentum", "weight_decay", "nesterov"};
  CHECK(nearest("weight_decya", keys) == "weight_decay");
  CHECK(nearest("momentun", keys) == "momentum");
  CHECK(nearest("lr", keys) == "lr");
  CHECK(nearest("LR", keys) == "lr");
  CHECK(nearest("Momentun", {"MOMENTUM"}) == "MOMENTUM");
  CHECK(nearest("xyz", keys).empty());
  CHECK(nearest("", keys).empty());
  CHECK(nearest("lr", {}).empty());
}
