#include "recipe/schema.h"

#include "base/text.h"
#include "cli/workshop.h"
#include "recipe/read.h"
#include "run/plan.h"
#include "support/python.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace gputrain::testing {
namespace {

using Json = nlohmann::ordered_json;
using recipe::Key;

// Recipes with what the schema should say of each.
class Cases {
 public:
  void accepts(const std::string& what, const Json& recipe) { add(what, recipe, true); }
  void refuses(const std::string& what, const Json& recipe) { add(what, recipe, false); }

  // What the schema says otherwise, a line each.
  std::string wrong() const {
    const TemporaryFolder folder;
    const Outcome schema = Program(folder.path())({"schema"});
    REQUIRE(schema.exit_code == 0);
    const Json file{{"schema", Json::parse(schema.out)}, {"cases", cases_}};
    std::ofstream(folder / "cases.json") << file;
    const ShellResult read = run_python("cli/validate_recipes.py", folder / "cases.json");
    REQUIRE(read.exit_code == 0);
    return read.output;
  }

 private:
  void add(const std::string& what, const Json& recipe, bool valid) {
    cases_.push_back({{"what", what}, {"recipe", recipe}, {"valid", valid}});
  }

  Json cases_ = Json::array();
};

Json from_yaml(const std::string& text) {
  const recipe::Document document = recipe::read_text(text, "test.yaml");
  INFO(text << recipe::text_of(document.problems));
  REQUIRE(document.problems.empty());
  return Json::parse(recipe::json_text(document.root));
}

// A value as it could follow `key=` on the command line.
Json from_value(const std::string& text) {
  std::vector<recipe::Problem> problems;
  return Json::parse(recipe::json_text(recipe::read_value(text, {}, problems)));
}

// A good recipe in which the component of `path`, if it is of one, is of kind `kind`.
Json good_recipe(const std::string& path, const std::string& kind) {
  Json recipe = from_yaml("{model: {name: mlp}, data: {name: synthetic}, epochs: 1, max_time: 1h}");
  if (!kind.empty()) recipe[path.substr(0, path.find('.'))]["name"] = kind;
  return recipe;
}

Json with(Json recipe, const std::string& path, const Json& value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) {
    recipe[path] = value;
  } else {
    recipe[path.substr(0, dot)][path.substr(dot + 1)] = value;
  }
  return recipe;
}

bool is_list(const Key& key) {
  return key.type == Key::Type::kNumbers || key.type == Key::Type::kIntegers;
}

bool is_map(const Key& key) {
  return key.type == Key::Type::kSection || key.type == Key::Type::kComponent;
}

// Values of a type that the key does not take.
std::vector<Json> wrong_values(const Key& key) {
  const Json map = Json::object();
  const Json list = Json::array();
  switch (key.type) {
    case Key::Type::kNumber:
      return {"much", true, map, list};
    case Key::Type::kInteger:
      return {"many", 1.5, true, map, list};
    case Key::Type::kBoolean:
      return {"yes", 1, map, list};
    case Key::Type::kText:
      return {map, list};
    case Key::Type::kPath:
      return {"", map, list};
    case Key::Type::kPaths:
      return {"", map, Json::array({map}), Json::array({""})};
    case Key::Type::kDevice:
      return {"gpu", "cuda:x", 0, map, list};
    case Key::Type::kWord:
      return {"no such word", 1, map, list};
    case Key::Type::kNumbers:
      return {"many", 1, Json::array({"many"}), map};
    case Key::Type::kIntegers:
      return {"many", 1, Json::array({1.5}), map};
    case Key::Type::kTexts:
      return {map, Json::array({map})};
    case Key::Type::kMaps:
      return {"text", 1, map, Json::array({"text"}), Json::array({{{"no_such_key", 1}}})};
    case Key::Type::kDuration:
      return {"90", 90, "-1h", "0s", "2 weeks", map, list};
    case Key::Type::kBytes:
      return {"11", 11, "-1GiB", "0B", "2 gigabytes", map, list};
    case Key::Type::kInterval:
      return {"often", 0, 1.5, "0ep", "1 ep", "5", map, list};
    case Key::Type::kSection:
      if (!key.shorthand.list.empty()) return {"text", -1, Json::array({map})};
      if (!key.shorthand.value.empty()) return {"text", -1, list};
      return {"text", 1, list};
    case Key::Type::kComponent:
      return {"text", 1, list};
  }
  return {};
}

// Numbers just outside the range.
std::vector<Json> outside(const Key& key) {
  std::vector<Json> numbers;
  if (!key.range) return numbers;
  const recipe::Range range = *key.range;
  if (std::isfinite(range.min)) numbers.emplace_back(range.min_open ? range.min : range.min - 1);
  if (std::isfinite(range.max)) numbers.emplace_back(range.max_open ? range.max : range.max + 1);
  if (is_list(key)) {
    for (Json& number : numbers) number = Json::array({number});
  }
  return numbers;
}

void add_key(Cases& cases, const Key& key, const std::string& kind) {
  const Json good = good_recipe(key.path, kind);
  const std::string what = concat(kind, ' ', key.path);
  const auto refuses = [&](const Json& value) {
    cases.refuses(concat(what, ": ", value.dump()), with(good, key.path, value));
  };
  const auto accepts = [&](const Json& value) {
    cases.accepts(concat(what, ": ", value.dump()), with(good, key.path, value));
  };
  for (const Json& value : wrong_values(key)) refuses(value);
  for (const Json& value : outside(key)) refuses(value);
  cases.refuses(what + " misspelt", with(good, key.path + "x", 1));
  accepts("${env:VALUE}");
  if (!is_map(key)) accepts(from_value(key.value));
  if (key.takes_auto) accepts("auto");
  if (key.takes_null) accepts(nullptr);
}

}  // namespace

TEST_CASE("schema: accepts every recipe that ships", "[cli][python]") {
  if (test_python() == nullptr) GPUTRAIN_SKIP("GPUTRAIN_TEST_PYTHON is not set: no jsonschema package");
  Cases cases;
  for (const auto& entry : std::filesystem::directory_iterator(source_path() + "/configs")) {
    cases.accepts(entry.path().filename().string(), from_yaml(text_of(entry.path())));
  }
  CHECK(cases.wrong() == "");
}

TEST_CASE("schema: every key refuses a wrong type, a misspelling and what is out of range", "[cli][python]") {
  if (test_python() == nullptr) GPUTRAIN_SKIP("GPUTRAIN_TEST_PYTHON is not set: no jsonschema package");
  Cases cases;
  for (const Key& key : run::catalogue().keys) add_key(cases, key, "");
  for (const auto& [component, kinds] : run::catalogue().kinds) {
    for (const recipe::Kind& kind : kinds) {
      if (kind.name.rfind(recipe::kForTests, 0) == 0) continue;
      for (const Key& key : kind.keys) add_key(cases, key, kind.name);
    }
  }
  CHECK(cases.wrong() == "");
}

TEST_CASE("schema: judges recipes as the program does", "[cli][python]") {
  if (test_python() == nullptr) GPUTRAIN_SKIP("GPUTRAIN_TEST_PYTHON is not set: no jsonschema package");
  const std::string model_and_data = "model: { name: mlp }\ndata: { name: synthetic }\n";
  Cases cases;
  const auto accepts = [&](const std::string& yaml) { cases.accepts(yaml, from_yaml(yaml)); };
  const auto refuses = [&](const std::string& yaml) { cases.refuses(yaml, from_yaml(yaml)); };
  accepts(model_and_data + "max_steps: 10");
  accepts(model_and_data + "max_time: 1.5h");
  refuses(model_and_data);
  refuses("data: { name: synthetic }\nepochs: 1");
  refuses("model: { name: mlp }\nepochs: 1");
  refuses("model: { hidden: [4] }\ndata: { name: synthetic }\nepochs: 1");
  refuses("model: { name: mpl }\ndata: { name: synthetic }\nepochs: 1");
  refuses("model: { name: mlp }\ndata: { name: testing.linear }\nepochs: 1");
  const std::string good = model_and_data + "epochs: 1\n";
  accepts(good + "optimizer: { momentum: 0.5 }");  // of sgd, the default
  refuses(good + "optimizer: { beta1: 0.5 }");
  accepts(good + "optimizer: { name: adamw, beta1: 0.5 }");
  refuses(good + "optimizer: { name: adamw, momentum: 0.5 }");
  accepts(good + "optimizer: { name: '${env:OPTIMIZER,sgd}', momentum: 0.5 }");
  accepts(good + "validation: { every: 100 }");
  accepts(good + "validation: { every: .5ep }");
  accepts(good + "validation: { every: 30min }");
  accepts(good + "device: cuda:1");
  accepts(good + "name: 2024");
  refuses(good + "lr: 0.1");
  accepts("base: a.yaml");
  accepts("base: [a.yaml, b.yaml]\noptimizer: { beta1: 0.5 }");
  refuses("base: { a: 1 }");
  refuses("base: []");
  refuses("base: ''");
  accepts("base: []\n" + good);
  refuses(model_and_data + "epochs: ~");
  accepts(model_and_data + "epochs: ~\nmax_steps: 1");
  accepts(good + "seed: 9223372036854775807");
  cases.refuses("seed: 2^63", with(from_yaml(good), "seed", std::uint64_t{1} << 63));
  CHECK(cases.wrong() == "");
}

TEST_CASE("schema --markdown: docs/recipe.md is what it prints", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"schema", "--markdown"});
  CHECK(outcome.exit_code == 0);
  if (outcome.out != text_of(source_path() + "/docs/recipe.md")) {
    FAIL("docs/recipe.md is stale; refresh it with: " << binary_path() << " schema --markdown > "
                                                      << source_path() << "/docs/recipe.md");
  }
}

}  // namespace gputrain::testing
