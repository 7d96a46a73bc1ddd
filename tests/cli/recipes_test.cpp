#include "cli/workshop.h"

#include <nlohmann/json.hpp>

namespace gputrain::testing {
namespace {

// Of configs/, without .yaml, sorted.
std::vector<std::string> shipped() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_path() + "/configs")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("recipes: lists what ships, a line each with what it is", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"recipes"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out,
             ContainsSubstring("fashion-resnet18    ResNet-18 for small images on Fashion-MNIST\n"));
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == static_cast<long>(shipped().size()));
}

TEST_CASE("recipes --json: names and the whole comment at the top of each", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"recipes", "--json"});
  CHECK(outcome.exit_code == 0);
  std::vector<std::string> names;
  for (const auto& recipe : nlohmann::json::parse(outcome.out)) {
    names.push_back(recipe.at("name"));
    CHECK(recipe.at("meaning").get<std::string>().size() > 20);
  }
  CHECK(names == shipped());
}

TEST_CASE("recipes: one is printed as it is in configs/, and works in any folder", "[cli]") {
  const Workshop shop;
  for (const std::string& name : shipped()) {
    CAPTURE(name);
    const Outcome outcome = shop.gputrain({"recipes", name});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out == text_of(source_path() + "/configs/" + name + ".yaml"));
    shop.write(name + ".yaml", outcome.out);
  }
  for (const std::string& name : shipped()) {
    CAPTURE(name);
    CHECK(shop.gputrain({"check", name + ".yaml", "--print"}).exit_code == 0);
  }
}

TEST_CASE("recipes: one that is laid over another says which it needs", "[cli]") {
  const Workshop shop;
  CHECK(shop.gputrain({"recipes", "fashion-adamw"}).err ==
        "note: fashion-adamw is laid over fashion-resnet18, which has to lie beside it: gputrain recipes "
        "fashion-resnet18 > fashion-resnet18.yaml\n");
  CHECK(shop.gputrain({"recipes", "quickstart"}).err.empty());
}

TEST_CASE("recipes: an unknown name is refused with the nearest", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"recipes", "quickstrat"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring("quickstrat is no recipe that ships; expected "));
  CHECK_THAT(outcome.err, ContainsSubstring("; did you mean quickstart?"));
}

}  // namespace gputrain::testing
