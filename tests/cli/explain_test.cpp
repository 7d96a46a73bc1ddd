#include "cli/workshop.h"

namespace gputrain::testing {
namespace {

Outcome explained(const std::string& key, const std::vector<std::string>& more = {},
                  const std::string& recipe = Workshop::recipe()) {
  const Workshop shop;
  shop.write("recipe.yaml", recipe);
  std::vector<std::string> arguments{"check", "recipe.yaml", "--explain", key};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return shop.gputrain(arguments);
}

}  // namespace

TEST_CASE("explain: base is a key like others", "[cli]") {
  const Workshop shop;
  shop.write("mine.yaml", "base: recipe.yaml\n");
  const Outcome outcome = shop.gputrain({"check", "mine.yaml", "--explain", "base"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("  type     file or list of files\n  default  []\n"));
  CHECK_THAT(outcome.out, ContainsSubstring("  value    \"recipe.yaml\"  (mine.yaml:1:7)\n"));
}

TEST_CASE("explain: the name of a component is one of its kinds", "[cli]") {
  const Outcome outcome = explained("optimizer.name", {"optimizer.name=adamw"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(
      outcome.out,
      ContainsSubstring(
          "  type     sgd, adamw, adam, lion, lamb, adafactor or muon\n  default  sgd\n  value    adamw  ("));
}

TEST_CASE("explain: defaults are what holds", "[cli]") {
  CHECK_THAT(explained("name").out,
             ContainsSubstring("  default  recipe\n  value    points  (recipe.yaml:1:7)\n"));
  CHECK_THAT(explained("output_dir").out,
             ContainsSubstring("  default  runs/${name}\n  value    runs/points  (default)\n"));
}

TEST_CASE("explain: a key without its map is told the whole of it", "[cli]") {
  const Outcome outcome = explained("lr");
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("this recipe has no such key; did you mean optimizer.lr?"));
}

TEST_CASE("explain: a recipe with mistakes is explained too", "[cli]") {
  const Outcome seed = explained("seed", {"seed=x", "optimizer.lr=0.5"});
  CHECK(seed.exit_code == 0);
  CHECK_THAT(seed.out, ContainsSubstring("  value    x  (argument seed=x)\n"
                                         "  refused  argument seed=x: seed is x; expected an integer\n"));
  const Outcome lr = explained("optimizer.lr", {"seed=x", "optimizer.lr=0.5"});
  CHECK(lr.exit_code == 0);
  CHECK(lr.out.find("refused") == std::string::npos);
  const Outcome name = explained("optimizer.name", {"optimizer.name=rmsprop"});
  CHECK(name.exit_code == 0);
  CHECK_THAT(name.out,
             ContainsSubstring("  refused  argument optimizer.name=rmsprop: optimizer.name is rmsprop;"));
  CHECK(explained("seed", {}, "seed: [1\n").exit_code == 2);
}

}  // namespace gputrain::testing
