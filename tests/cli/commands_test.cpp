#include "cli/workshop.h"

#include <nlohmann/json.hpp>

namespace gputrain::testing {

TEST_CASE("help and version: they go to stdout and end with 0", "[cli]") {
  const Workshop shop;
  const Outcome help = shop.gputrain({"--help"});
  CHECK(help.exit_code == 0);
  for (const char* word :
       {"run", "check", "doctor", "Examples:", "gputrain run configs/quickstart.yaml", "Exit codes"}) {
    CHECK_THAT(help.out, ContainsSubstring(word));
  }
  CHECK_THAT(shop.gputrain({"run", "--help"}).out, ContainsSubstring("--restart"));
  const Outcome version = shop.gputrain({"--version"});
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.out, ContainsSubstring("gputrain 0."));
}

TEST_CASE("check: prints the resolved recipe, which resolves to itself, and writes nothing", "[cli]") {
  const Workshop shop;
  const auto before = shop.listing();
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "optimizer.momentum=0.5"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(shop.listing() == before);
  CHECK_THAT(outcome.out, ContainsSubstring("momentum: 0.5"));
  CHECK_THAT(outcome.err, ContainsSubstring("parameters   22"));  // 2 * 4 + 4 + 4 * 2 + 2
  CHECK_THAT(outcome.err, ContainsSubstring("4 an epoch, 8 in all"));

  shop.write("resolved.yaml", outcome.out);
  const Outcome again = shop.gputrain({"check", "resolved.yaml"});
  CHECK(again.exit_code == 0);
  CHECK(again.out == outcome.out);
}

TEST_CASE("run --dry-run: checks and writes nothing", "[cli]") {
  const Workshop shop;
  const auto before = shop.listing();
  CHECK(shop.gputrain({"run", "recipe.yaml", "--dry-run"}).exit_code == 0);
  CHECK(shop.listing() == before);
}

TEST_CASE("every shipped recipe checks, and its resolved form resolves to itself", "[cli]") {
  const Workshop shop;
  const std::string configs = source_path() + "/configs";
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    INFO(entry.path());
    const Outcome outcome = shop.gputrain({"check", entry.path().string(), "device=cpu"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    shop.write("resolved.yaml", outcome.out);
    CHECK(shop.gputrain({"check", "resolved.yaml"}).out == outcome.out);
  }
}

TEST_CASE("doctor: says whether it will train, for people and as JSON", "[cli]") {
  const Workshop shop;
  const Outcome text = shop.gputrain({"doctor"});
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, ContainsSubstring("will it train: yes"));
  const Outcome json = shop.gputrain({"doctor", "--json"});
  CHECK(json.exit_code == 0);
  CHECK(nlohmann::json::parse(json.out).at("will_train") == true);
}

}  // namespace gputrain::testing
