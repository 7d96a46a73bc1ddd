#include "recipe/component.h"

#include "recipe/read.h"
#include "support/catch.h"

using namespace gputrain::recipe;

namespace {

struct Options {
  std::int64_t width = 4;
};
void describe(Visitor& v, Options& o) {
  v.integer("width", o.width, Range{1, 9}, "", "");
}

int build(const Options& options, int factor) {
  return static_cast<int>(options.width) * factor;
}

std::vector<Component<int, int>> all() {
  return {component("mlp", "", build), component("vit", "", build)};
}

Choice chosen(const std::string& name, const std::string& settings) {
  return {name, read_text(settings, "a.yaml").root};
}

}  // namespace

TEST_CASE("component: the one that is named is built with its settings", "[recipe]") {
  std::vector<Problem> problems;
  const auto bound = choose(all(), chosen("vit", "{name: vit, width: 3}"), "model", {}, problems);
  CHECK(problems.empty());
  CHECK(bound.name == "vit");
  CHECK(bound.build(5) == 15);
}

TEST_CASE("component: its unknown keys are said to be its own", "[recipe]") {
  std::vector<Problem> problems;
  choose(all(), chosen("vit", "{widht: 3}"), "model", {}, problems);
  CHECK(text_of(problems) == "a.yaml:1:2: model.widht is not a key of vit; did you mean width?");
}

TEST_CASE("component: a name that does not exist is refused with those that do", "[recipe]") {
  std::vector<Problem> problems;
  choose(all(), chosen("vti", "{name: vti}"), "model", {}, problems);
  choose(all(), chosen("", "{width: 3}"), "model", {}, problems);
  CHECK(text_of(problems) ==
        "a.yaml:1:8: model.name is vti; expected mlp or vit; did you mean vit?\n"
        "a.yaml: model.name is missing; expected mlp or vit");
  problems.clear();
  choose(all(), chosen("", "{name: [vit]}"), "model", {}, problems);
  choose(all(), chosen("", "{name: ~}"), "model", {}, problems);
  choose(all(), chosen("VIT", "{name: VIT}"), "model", {}, problems);
  CHECK(text_of(problems) ==
        "a.yaml:1:8: model.name is a list; expected mlp or vit\n"
        "a.yaml:1:2: model.name is null; expected mlp or vit\n"
        "a.yaml:1:8: model.name is VIT; expected mlp or vit; did you mean vit?");
}

TEST_CASE("component: a name that could not be read is no second problem", "[recipe]") {
  std::vector<Problem> problems;
  Choice choice = chosen("${env:NOPE}", "{name: x, width: 99}");
  choice.settings.find("name")->unreadable = true;
  CHECK(!choose(all(), choice, "model", {}, problems).build);
  choice = chosen("", "{}");
  choice.settings.unreadable = true;
  CHECK(!choose(all(), choice, "model", {}, problems).build);
  CHECK(problems.empty());
}

TEST_CASE("component: a key of another kind is told as such", "[recipe]") {
  std::vector<Problem> problems;
  choose(all(), chosen("vit", "{depth: 3, lr: 1}"), "model",
         {{"model.depth", "mlp"}, {"optimizer.lr", "sgd"}}, problems);
  CHECK(text_of(problems) ==
        "a.yaml:1:2: model.depth is not a key of vit; it is a key of mlp\n"
        "a.yaml:1:12: model.lr is not a key of vit; it belongs under optimizer");
}

TEST_CASE("component: its kinds are listed with their keys and defaults", "[recipe]") {
  const std::vector<Kind> listed = kinds(all(), "model");
  REQUIRE(listed.size() == 2);
  CHECK(listed[1].name == "vit");
  REQUIRE(listed[1].keys.size() == 1);
  CHECK(listed[1].keys[0].path == "model.width");
  CHECK(listed[1].keys[0].value == "4");
}
