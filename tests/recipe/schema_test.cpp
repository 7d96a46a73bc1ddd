#include "recipe/schema.h"

#include "recipe/read.h"
#include "support/catch.h"

#include <nlohmann/json.hpp>

using namespace gputrain::recipe;
using Json = nlohmann::json;

namespace {

Key number(const std::string& path, Key::Type type, const std::string& value, std::optional<Range> range) {
  Key key;
  key.path = path;
  key.type = type;
  key.value = value;
  key.meaning = "what it is";
  key.range = range;
  return key;
}

// The keys of a recipe and, for each component, two kinds with one key each and one that is for tests.
Catalogue small_catalogue() {
  Catalogue catalogue = recipe_catalogue();
  const Range share{.min = 0, .max = 1, .max_open = true};
  for (const char* component : {"model", "data", "objective", "optimizer", "lr_scheduler"}) {
    const std::string path = component;
    catalogue.kinds[path] = {
        {"sgd", "plain", {number(path + ".momentum", Key::Type::kNumber, "0.9", share)}},
        {"adamw", "adaptive", {number(path + ".betas", Key::Type::kNumbers, "[0.9, 0.999]", share)}},
        {"testing.none", "a seam", {}}};
  }
  return catalogue;
}

const Json& schema() {
  static const Json all = Json::parse(json_schema(small_catalogue()));
  return all;
}

const Json& alternatives(const std::string& key) {
  return schema().at("properties").at(key).at("anyOf");
}

const Json kSubstitution = {{"$ref", "#/definitions/substitution"}};

std::string as_json(const std::string& yaml) {
  const Document document = read_text(yaml, "a.yaml");
  REQUIRE(document.problems.empty());
  return json_text(document.root);
}

}  // namespace

TEST_CASE("schema: numbers have their range, with open ends", "[recipe]") {
  CHECK(alternatives("seed") ==
        Json{{{"type", "integer"}, {"minimum", 0}, {"maximum", INT64_MAX}}, kSubstitution});
  CHECK(alternatives("max_grad_norm") ==
        Json{{{"type", "number"}, {"exclusiveMinimum", 0}}, {{"type", "null"}}, kSubstitution});
  CHECK(alternatives("micro_batch_size") ==
        Json{{{"type", "integer"}, {"minimum", 1}, {"maximum", 1000000000}},
             {{"const", "auto"}},
             kSubstitution});
}

TEST_CASE("schema: words are an enumeration", "[recipe]") {
  CHECK(alternatives("precision").at(0).at("enum") ==
        Json{"auto", "fp32", "tf32", "fp16-mixed", "bf16-mixed", "fp16-true", "bf16-true"});
}

TEST_CASE("schema: descriptions tell meaning, type, unit and default", "[recipe]") {
  const Json& log_every = schema().at("properties").at("logging").at("properties").at("log_every");
  CHECK(
      log_every.at("description") ==
      "steps between lines of progress; integer, 1 <= log_every <= 1000000000000; unit: steps; default: 10");
  CHECK(log_every.at("default") == 10);
  CHECK(schema().at("properties").at("cuda").at("description") == "settings of the GPU");
  CHECK_FALSE(schema().at("properties").at("max_time").contains("default"));
  CHECK_FALSE(schema().at("properties").at("output_dir").contains("default"));
}

TEST_CASE("schema: no map accepts a key that is not its own", "[recipe]") {
  CHECK(schema().at("additionalProperties") == false);
  CHECK(schema().at("properties").at("cpu").at("additionalProperties") == false);
}

TEST_CASE("schema: a component's name decides its keys, and kinds for tests are left out", "[recipe]") {
  const Json& optimizer = schema().at("properties").at("optimizer");
  const Json& branches = optimizer.at("allOf");
  REQUIRE(branches.size() == 2);
  CHECK(optimizer.at("properties").at("name").at("description") == "kind of optimizer; default: sgd");
  CHECK(branches.at(0).at("if").at("properties").at("name").at("const") == "sgd");
  const Json& sgd = branches.at(0).at("then");
  CHECK(sgd.at("properties").size() == 2);
  CHECK(sgd.at("properties").contains("name"));
  CHECK(sgd.at("properties").at("momentum").at("default") == 0.9);
  CHECK(sgd.at("additionalProperties") == false);
  CHECK(branches.at(1).at("then").at("properties").at("betas").at("default") == Json{0.9, 0.999});
  CHECK(json_schema(small_catalogue()).find("testing.") == std::string::npos);
}

TEST_CASE("schema: without a name it is the default kind; over a base, any", "[recipe]") {
  const Json& alone = schema().at("else").at("properties");
  CHECK(alone.at("optimizer").at("else").at("properties").contains("momentum"));
  CHECK_FALSE(alone.at("optimizer").at("else").at("properties").contains("betas"));
  CHECK(alone.at("model") == Json{{"required", {"name"}}});
  const Json& over_base = schema().at("then").at("properties").at("optimizer").at("else").at("properties");
  CHECK(over_base.contains("momentum"));
  CHECK(over_base.contains("betas"));
}

TEST_CASE("schema: what a recipe must have, unless it has a base", "[recipe]") {
  CHECK(schema().at("if") == Json{{"required", {"base"}}, {"properties", {{"base", {{"minItems", 1}}}}}});
  CHECK(schema().at("else").at("required") == Json{"model", "data"});
  CHECK(schema().at("else").at("anyOf").at(2) ==
        Json{{"required", {"max_time"}}, {"properties", {{"max_time", {{"not", {{"type", "null"}}}}}}}});
}

TEST_CASE("schema: a base is one file or a list", "[recipe]") {
  Catalogue catalogue = small_catalogue();
  Key base = number("base", Key::Type::kPaths, "~", {});
  base.takes_null = true;
  catalogue.keys.push_back(base);
  const Json with_base = Json::parse(json_schema(catalogue));
  const Json& all = with_base.at("properties").at("base").at("anyOf");
  CHECK(all.at(0).at("type").at(0) == "string");
  CHECK(all.at(1).at("type") == "array");
  CHECK(all.at(2) == Json{{"type", "null"}});
}

TEST_CASE("json_text: values are what a recipe's reader takes them for", "[recipe]") {
  CHECK(as_json("{a: 5e-4, b: 12, c: true, d: ~, e: yes, f: '1', g: 010, h: [1, x]}") ==
        R"({"a":0.0005,"b":12,"c":true,"d":null,"e":"yes","f":"1","g":"010","h":[1,"x"]})");
}
