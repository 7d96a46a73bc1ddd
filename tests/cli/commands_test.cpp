#include "cli/workshop.h"

#include <nlohmann/json.hpp>

#include <regex>

namespace gputrain::testing {
namespace {

// A resolved recipe without where its values come from.
std::string without_comments(const std::string& resolved) {
  return std::regex_replace(resolved, std::regex(" +# [^\n]*"), "");
}

}  // namespace

TEST_CASE("help and version: they go to stdout and end with 0", "[cli]") {
  const Workshop shop;
  const Outcome help = shop.gputrain({"--help"});
  CHECK(help.exit_code == 0);
  for (const char* word : {"run", "check", "recipes", "schema", "completion", "doctor",
                           "Examples:", "gputrain recipes quickstart > mine.yaml", "Exit codes"}) {
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
  CHECK(without_comments(again.out) == without_comments(outcome.out));
  CHECK_THAT(outcome.out, ContainsSubstring("# argument optimizer.momentum=0.5\n"));
  CHECK_THAT(again.out, ContainsSubstring("# resolved.yaml:"));
}

TEST_CASE("check: the mistakes of a recipe and of its data come together", "[cli]") {
  const Workshop shop;
  shop.write("points.txt", "0 -1 -1\n1 x 1\n");
  shop.write("bad.yaml", Workshop::recipe() + "sed: 1\n");
  const auto before = shop.listing();
  const Outcome outcome =
      shop.gputrain({"check", "bad.yaml", "optimizer.momentum=0", "optimizer.nesterov=true"});
  CHECK(outcome.exit_code == 2);
  CHECK(shop.listing() == before);
  CHECK_THAT(outcome.err, ContainsSubstring("gputrain: bad.yaml: 3 problems\n"));
  CHECK_THAT(outcome.err,
             ContainsSubstring("bad.yaml:9:1: sed is not a key of the recipe; did you mean seed?\n"));
  CHECK_THAT(outcome.err,
             ContainsSubstring("argument optimizer.nesterov=true: optimizer.nesterov is true and "));
  CHECK_THAT(outcome.err, ContainsSubstring("points.txt:2"));
}

TEST_CASE("check: mistakes of data alone end with 3", "[cli]") {
  const Workshop shop;
  shop.write("points.txt", "0 -1 -1\n1 x 1\n");
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml"});
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, ContainsSubstring("points.txt:2"));
}

TEST_CASE("check: a recipe over a base in another folder", "[cli]") {
  const Workshop shop;
  std::filesystem::create_directory(shop.folder / "bases");
  shop.write("bases/points.txt", shop.read("points.txt"));
  shop.write("bases/base.yaml", Workshop::recipe() + "precison: fp32\n");
  shop.write("mine.yaml", "base: bases/base.yaml\nlr: 0.2\nseed: x\n");
  const Outcome refused = shop.gputrain({"check", "mine.yaml", "epochs=0"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err,
             ContainsSubstring(
                 "\nbases/base.yaml:9:1: precison is not a key of the recipe; did you mean precision?\n"));
  CHECK_THAT(refused.err, ContainsSubstring("\nmine.yaml:3:7: seed is x; expected an integer\n"));
  CHECK_THAT(refused.err, ContainsSubstring("\nargument epochs=0: epochs is 0; expected 1 <= epochs"));
  CHECK_THAT(refused.err, ContainsSubstring("\nnote: mine.yaml:2:1: read `lr` as `optimizer.lr`\n"));

  shop.write("bases/base.yaml", Workshop::recipe());
  shop.write("mine.yaml", "base: bases/base.yaml\nlr: 0.2\n");
  const Outcome outcome = shop.gputrain({"check", "mine.yaml"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(std::regex_search(outcome.out, std::regex("\n  lr: 0.2 +# mine.yaml:2:5\n")));
  CHECK_THAT(outcome.out, ContainsSubstring("/bases/points.txt"));
}

TEST_CASE("run: what was resolved is the same run", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "optimizer.momentum=0.5"}).exit_code == 0);
  const Outcome again = shop.gputrain({"run", "runs/points/resolved.yaml", "output_dir=runs/again"});
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  CHECK(shop.read("runs/points/model.safetensors") == shop.read("runs/again/model.safetensors"));
  const auto values = [&](const std::string& folder) {
    const std::string resolved = without_comments(shop.read(folder + "/resolved.yaml"));
    return resolved.substr(resolved.find("seed:"));  // behind name and output_dir
  };
  CHECK(values("runs/again") == values("runs/points"));
}

TEST_CASE("check --print: prints what check prints, and opens no data", "[cli]") {
  const Workshop shop;
  const Outcome checked = shop.gputrain({"check", "recipe.yaml"});
  REQUIRE(checked.exit_code == 0);
  std::filesystem::remove(shop.folder / "points.txt");
  const Outcome printed = shop.gputrain({"check", "recipe.yaml", "--print"});
  CHECK(printed.exit_code == 0);
  CHECK(printed.out == checked.out);
}

TEST_CASE("check --explain: says what a key means, and where its value comes from", "[cli]") {
  const Workshop shop;
  const Outcome outcome =
      shop.gputrain({"check", "recipe.yaml", "--explain", "optimizer.lr", "--set", "optimizer.lr=0.5"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("optimizer.lr: peak learning rate\n"));
  CHECK_THAT(outcome.out, ContainsSubstring("0.5  (argument optimizer.lr=0.5)"));
  CHECK(shop.gputrain({"check", "recipe.yaml", "--explain", "optimizer.rl"}).exit_code == 2);
  const Outcome both = shop.gputrain({"check", "recipe.yaml", "--explain", "seed", "--print"});
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.err, ContainsSubstring("excludes"));
}

TEST_CASE("check --set: the same as key=value, and it may stand before the recipe", "[cli]") {
  const Workshop shop;
  const Outcome bare = shop.gputrain({"check", "recipe.yaml", "seed=7", "optimizer.lr=0.2", "--print"});
  REQUIRE(bare.exit_code == 0);
  const Outcome named =
      shop.gputrain({"check", "--set", "seed=7", "--set", "optimizer.lr=0.2", "recipe.yaml", "--print"});
  CHECK(named.out == bare.out);
}

TEST_CASE("check: arguments hold in the order they were typed, whichever way", "[cli]") {
  const Workshop shop;
  const auto seed = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"check", "recipe.yaml", "--print"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = shop.gputrain(command);
    std::smatch found;
    return std::regex_search(outcome.out, found, std::regex("\nseed: (\\d+)")) ? found[1].str() : outcome.err;
  };
  CHECK(seed({"seed=1", "--set", "seed=2"}) == "2");
  CHECK(seed({"--set", "seed=2", "seed=3"}) == "3");
  CHECK(seed({"seed=2", "--unset", "seed", "--set", "seed=4"}) == "4");
  CHECK(seed({"seed=2", "--unset", "seed"}) == "1");
}

TEST_CASE("check: a folder may be called what YAML would not take for text", "[cli]") {
  const Workshop shop;
  for (const std::string folder : {"[x", "~", "null", "a: b", "1"}) {
    const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "--print", "--output-dir", folder});
    CAPTURE(folder, outcome.err);
    CHECK(outcome.exit_code == 0);
    shop.write("resolved.yaml", outcome.out);
    CHECK(without_comments(shop.gputrain({"check", "resolved.yaml", "--print"}).out) ==
          without_comments(outcome.out));
  }
}

TEST_CASE("check: a GPU that is not there is a note, since nothing is trained", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "device=cuda:7"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("device: cuda:7"));
  CHECK_THAT(outcome.err, ContainsSubstring("note: argument device=cuda:7: device is cuda:7, but "));
}

TEST_CASE("check: a folder that a run would refuse is a note", "[cli]") {
  const Workshop shop;
  std::filesystem::create_directories(shop.folder / "full");
  shop.write("full/file.txt", "x");
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "output_dir=full"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("note: a run would be refused: full: holds files, but no run"));
}

TEST_CASE("check: what a run would refuse of its trace is told with the rest", "[cli]") {
  const Workshop shop;
  std::filesystem::create_directories(shop.folder / "full");
  shop.write("full/file.txt", "x");
  const Outcome outcome = shop.gputrain(
      {"check", "recipe.yaml", "output_dir=full", "logging.trace=metrics.jsonl", "data.path=missing.txt"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("gputrain: recipe.yaml: 2 problems\n"));
  CHECK_THAT(outcome.err, ContainsSubstring("logging.trace is metrics.jsonl, a file of the run itself"));
  CHECK_THAT(outcome.err, ContainsSubstring("missing.txt"));
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
    const Outcome again = shop.gputrain({"check", "resolved.yaml"});
    CHECK(without_comments(again.out) == without_comments(outcome.out));
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
