#include "recipe/schema.h"

#include "base/text.h"
#include "recipe/paths.h"
#include "recipe/read.h"
#include "recipe/scalars.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace gputrain::recipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSubstitution = R"(\$\{)";

Json to_json(const Node& node) {
  constexpr Range kAny{-kNoLimit, kNoLimit};
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kList: {
      Json list = Json::array();
      for (const Node& element : node.list) list.push_back(to_json(element));
      return list;
    }
    case Node::Kind::kMap: {
      Json map = Json::object();
      for (const auto& [key, value] : node.map) map[key.scalar] = to_json(value);
      return map;
    }
    case Node::Kind::kScalar:
      break;
  }
  if (const auto integer = read_integer(node, "", kAny).value) return *integer;
  if (const auto number = read_number(node, "", kAny).value) return *number;
  if (const auto boolean = read_boolean(node).value) return *boolean;
  return node.scalar;
}

Json to_json(double bound) {
  constexpr double kExact = 1e15;
  if (bound == std::floor(bound) && std::abs(bound) < kExact) return static_cast<std::int64_t>(bound);
  return bound;
}

Json reference_to(const std::string& definition) {
  return {{"$ref", "#/definitions/" + definition}};
}

Json number_in(Range range) {
  Json schema{{"type", "number"}};
  if (std::isfinite(range.min)) schema[range.min_open ? "exclusiveMinimum" : "minimum"] = to_json(range.min);
  if (std::isfinite(range.max)) schema[range.max_open ? "exclusiveMaximum" : "maximum"] = to_json(range.max);
  return schema;
}

Json integer_in(Range range) {
  using Limits = std::numeric_limits<std::int64_t>;
  Json schema = number_in(range);
  schema["type"] = "integer";
  if (!std::isfinite(range.min)) schema["minimum"] = Limits::min();
  if (!std::isfinite(range.max)) schema["maximum"] = Limits::max();
  return schema;
}

Json list_of(Json element) {
  return {{"type", "array"}, {"items", {{"anyOf", {std::move(element), reference_to("substitution")}}}}};
}

// What any scalar is to a key that takes text.
Json text() {
  return {{"type", {"string", "number", "boolean"}}};
}

Json file() {
  Json schema = text();
  schema["minLength"] = 1;
  return schema;
}

// A map with these keys.
Json map_of_items(const std::vector<Key>& item_keys);

// What may be written for `key`, without auto, null and substitutions.
std::vector<Json> alternatives(const Key& key) {
  const Range range = key.range.value_or(Range{-kNoLimit, kNoLimit});
  switch (key.type) {
    case Key::Type::kNumber:
      return {number_in(range)};
    case Key::Type::kInteger:
      return {integer_in(range)};
    case Key::Type::kBoolean:
      return {{{"type", "boolean"}}};
    case Key::Type::kText:
      return {text()};
    case Key::Type::kPath:
      return {file()};
    case Key::Type::kPaths:
      return {file(), list_of(file())};
    case Key::Type::kDevice:
      return {{{"enum", {"cpu", "cuda"}}}, {{"type", "string"}, {"pattern", "^cuda:[0-9]{1,2}$"}}};
    case Key::Type::kWord:
      return {{{"enum", key.words}}};
    case Key::Type::kNumbers:
      return {list_of(number_in(range))};
    case Key::Type::kIntegers:
      return {list_of(integer_in(range))};
    case Key::Type::kTexts:
      return {text(), list_of(text())};
    case Key::Type::kMaps:
      return {list_of(map_of_items(key.item_keys))};
    case Key::Type::kDuration:
      return {reference_to("duration")};
    case Key::Type::kBytes:
      return {reference_to("bytes")};
    case Key::Type::kInterval:
      return {integer_in({1, 1e12}), reference_to("epochs"), reference_to("duration")};
    case Key::Type::kSection:
    case Key::Type::kComponent:
      break;  // see map_of
  }
  return {};
}

std::string description(const Key& key) {
  std::string told = concat(key.meaning, "; ", type_text(key));
  if (!key.unit.empty()) told += concat("; unit: ", key.unit);
  if (!key.value.empty() && key.value != "\"\"") told += concat("; default: ", key.value);
  return told;
}

// The value that an editor writes for the key, unless that is nothing.
void add_default(Json& schema, const Key& key) {
  std::vector<Problem> none;
  const Node value = read_value(key.value, {}, none);
  if (value.kind != Node::Kind::kNull && key.value != "\"\"") schema["default"] = to_json(value);
}

Json value_schema(const Key& key) {
  std::vector<Json> all = alternatives(key);
  if (key.takes_auto) all.push_back({{"const", "auto"}});
  if (key.takes_null) all.push_back({{"type", "null"}});
  all.push_back(reference_to("substitution"));
  Json schema{{"description", description(key)}};
  add_default(schema, key);
  schema["anyOf"] = all;
  return schema;
}

Json property(const Key& key, const std::vector<Key>& all);

// Those of `all` that stand directly in the map `parent`.
Json properties_in(const std::string& parent, const std::vector<Key>& all) {
  Json properties = Json::object();
  for (const Key& key : all) {
    const std::string name = last_part(key.path);
    if (key.path == join_path(parent, name)) properties[name] = property(key, all);
  }
  return properties;
}

Json closed(Json properties) {
  return {{"properties", std::move(properties)}, {"additionalProperties", false}};
}

// A map, or a substitution for one. Not with anyOf, so that an editor marks the key that is wrong, and not
// the whole map: what is said of properties does not concern text.
Json map_of(const Key& key, const Json& rules) {
  Json schema{{"description", key.meaning}, {"type", {"object", "string"}}, {"pattern", kSubstitution}};
  schema.update(rules);
  return schema;
}

Json property(const Key& key, const std::vector<Key>& all) {
  if (key.type != Key::Type::kSection) return value_schema(key);
  Json schema = map_of(key, closed(properties_in(key.path, all)));
  // What is said of numbers, texts and lists does not concern maps.
  for (const Key& inner : all) {
    const bool is_value = inner.path == key.path + "." + key.shorthand.value;
    const bool is_list = inner.path == key.path + "." + key.shorthand.list;
    if (is_value && inner.type == Key::Type::kWord) {
      schema["pattern"] = concat("^(", join(inner.words, "|"), ")$|", kSubstitution);
      continue;
    }
    for (const Json& value : is_value || is_list ? alternatives(inner) : std::vector<Json>()) {
      if (is_list != (value["type"] == "array")) continue;
      schema["type"].push_back(value["type"]);
      for (const auto& [rule, bound] : value.items()) {
        if (rule != "type") schema[rule] = bound;
      }
    }
  }
  return schema;
}

Json map_of_items(const std::vector<Key>& item_keys) {
  Json schema{{"type", "object"}};
  schema.update(closed(properties_in("", item_keys)));
  return schema;
}

// One component of a recipe. Which keys its map may have depends on its name; without one, on the recipe:
// over a base any kind may be meant, else it is the default.
class ComponentSchema {
 public:
  ComponentSchema(const Catalogue& catalogue, const Key& key)
      : key_(key), kinds_(catalogue.shown_kinds(key.path)) {
    Json names = Json::array();
    for (const Kind* kind : kinds_) names.push_back({{"const", kind->name}, {"description", kind->meaning}});
    names.push_back(reference_to("substitution"));
    const Key name = catalogue.name_key(key.path);
    name_["description"] = concat(name.meaning, name.value.empty() ? "" : "; default: " + name.value);
    name_["anyOf"] = std::move(names);
  }

  // What a map with a name may have.
  Json named() const {
    Json branches = Json::array();
    for (const Kind* kind : kinds_) {
      branches.push_back(
          {{"if", {{"properties", {{"name", {{"const", kind->name}}}}}, {"required", {"name"}}}},
           {"then", closed(keys_of(*kind))}});
    }
    return map_of(key_, {{"properties", {{"name", name_}}}, {"allOf", branches}});
  }

  // What one without may have, in a recipe that has no base.
  Json unnamed() const {
    const auto chosen = std::find_if(kinds_.begin(), kinds_.end(),
                                     [&](const Kind* kind) { return kind->name == key_.value; });
    if (chosen == kinds_.end()) return {{"required", {"name"}}};
    return without_name(closed(keys_of(**chosen)));
  }

  // The same over a base.
  Json unnamed_over_base() const {
    std::map<std::string, std::vector<Json>> of_any_kind;
    for (const Kind* kind : kinds_) {
      const Json keys = keys_of(*kind);
      for (const auto& [key, schema] : keys.items()) {
        std::vector<Json>& found = of_any_kind[key];
        if (std::find(found.begin(), found.end(), schema) == found.end()) found.push_back(schema);
      }
    }
    Json properties = Json::object();
    for (const auto& [key, schemas] : of_any_kind) {
      properties[key] = schemas.size() == 1 ? schemas.front() : Json{{"anyOf", schemas}};
    }
    return without_name(closed(properties));
  }

 private:
  Json keys_of(const Kind& kind) const {
    Json keys{{"name", name_}};
    keys.update(properties_in(key_.path, kind.keys));
    return keys;
  }

  static Json without_name(Json schema) {
    return {{"if", {{"required", {"name"}}}}, {"else", std::move(schema)}};
  }

  const Key& key_;
  std::vector<const Kind*> kinds_;
  Json name_;
};

Json definitions() {
  const std::string above_0 = "^(?=[0-9.]*[1-9])";
  const std::string exponent = "([eE][+-]?[0-9]+)?";
  return {{"substitution",
           {{"description", "${env:VAR}, ${env:VAR,default} or ${key.sub}"},
            {"type", "string"},
            {"pattern", kSubstitution}}},
          {"duration",
           {{"description", "90s, 30min, 2h or 1d"},
            {"type", "string"},
            {"pattern", concat(above_0, R"([0-9]+(\.[0-9]*)?)", exponent, " ?(ms|s|min|h|d)$")}}},
          {"bytes",
           {{"description", "500MB or 11.5GiB"},
            {"type", "string"},
            {"pattern", concat(above_0, R"([0-9]+(\.[0-9]*)?)", exponent, " ?(B|[kMGT]B|[KMGT]iB)$")}}},
          {"epochs",
           {{"description", "1ep or 0.5ep"},
            {"type", "string"},
            {"pattern", concat(above_0, R"(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+))", exponent, "ep$")}}}};
}

}  // namespace

std::string json_schema(const Catalogue& catalogue) {
  Json properties = properties_in("", catalogue.keys);
  Json over_base = Json::object();
  Json alone = Json::object();
  Json required = Json::array();
  for (const Key& key : catalogue.keys) {
    if (key.type != Key::Type::kComponent) continue;
    const ComponentSchema component(catalogue, key);
    properties[key.path] = component.named();
    over_base[key.path] = component.unnamed_over_base();
    alone[key.path] = component.unnamed();
    if (key.value.empty()) required.push_back(key.path);
  }
  Json limits = Json::array();
  for (const char* limit : {"epochs", "max_steps", "max_time"}) {
    limits.push_back({{"required", {limit}}, {"properties", {{limit, {{"not", {{"type", "null"}}}}}}}});
  }
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "a recipe of gputrain"},
              {"type", "object"}};
  schema.update(closed(properties));
  // An empty list of bases is none.
  schema["if"] = {{"required", {"base"}}, {"properties", {{"base", {{"minItems", 1}}}}}};
  schema["then"] = {{"properties", over_base}};
  schema["else"] = {{"required", required}, {"anyOf", limits}, {"properties", alone}};
  schema["definitions"] = definitions();
  return schema.dump(2) + '\n';
}

std::string json_text(const Node& node) {
  return to_json(node).dump();
}

}  // namespace gputrain::recipe
