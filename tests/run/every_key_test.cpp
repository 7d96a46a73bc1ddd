// Every key that a recipe can have, in every way it can be written wrongly. A key that is added passes
// through here by being described.
#include "base/text.h"
#include "recipe/paths.h"
#include "run/plan.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

using namespace gputrain;
using recipe::Key;

namespace {

// A key of the recipe, or of one kind of a component.
struct Place {
  Key key;
  std::string kind;

  std::string parent() const {
    const std::size_t dot = key.path.rfind('.');
    return dot == std::string::npos ? "" : key.path.substr(0, dot);
  }
  std::string name() const { return recipe::last_part(key.path); }
  bool is_map() const { return key.type == Key::Type::kSection || key.type == Key::Type::kComponent; }

  // A value that is right.
  std::string value() const {
    if (key.type == Key::Type::kComponent)
      return "{ name: " + run::catalogue().kinds.at(key.path)[0].name + " }";
    if (key.type == Key::Type::kPaths) return "[]";
    return key.type == Key::Type::kSection ? "{}" : key.value;
  }
};

std::vector<Place> every_place() {
  std::vector<Place> places;
  for (const Key& key : run::catalogue().keys) places.push_back({key, ""});
  for (const auto& [component, kinds] : run::catalogue().kinds) {
    for (const recipe::Kind& kind : kinds) {
      for (const Key& key : kind.keys) places.push_back({key, kind.name});
    }
  }
  return places;
}

struct Written {
  std::string text;
  int line = 0;  // of `lines`
};

// A recipe that is right but for `lines` under `parent`, "" for the top level.
Written recipe_with(const std::string& parent, const std::string& kind,
                    const std::vector<std::string>& lines) {
  Written written;
  const std::set<std::string> given = [&] {
    std::set<std::string> names = {parent};
    if (parent.empty()) {
      for (const std::string& line : lines) names.insert(line.substr(0, line.find(':')));
    }
    return names;
  }();
  const auto add = [&](const std::string& line) { written.text += line + "\n"; };
  if (given.count("model") == 0) add("model: { name: mlp }");
  if (given.count("data") == 0) add("data: { name: synthetic }");
  if (given.count("max_steps") == 0) add("max_steps: 1");
  std::string indent;
  if (!parent.empty()) {
    add(parent + ":");
    indent = "  ";
    if (!kind.empty()) add("  name: " + kind);
  }
  written.line = static_cast<int>(std::count(written.text.begin(), written.text.end(), '\n')) + 1;
  for (const std::string& line : lines) add(indent + line);
  return written;
}

// What refusing the recipe says, "" when it is accepted. It must end with the exit code for recipes, and
// leave the folder as it was.
std::string refusal(const std::string& text) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "a.yaml") << text;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  std::string said;
  try {
    run::refuse_problems(run::read_plan("a.yaml", {}));
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kUsage);
    said = error.what();
  }
  std::filesystem::current_path(before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  return said;
}

std::string place_at(int line, int column) {
  return concat("a.yaml:", line, ':', column, ": ");
}

int key_column(const Place& place) {
  return place.parent().empty() ? 1 : 3;
}

void check_value_refused(const Place& place, const std::string& value, const std::string& expected) {
  const Written written = recipe_with(place.parent(), place.kind, {place.name() + ": " + value});
  CAPTURE(written.text);
  const std::string said = refusal(written.text);
  CHECK_THAT(said, ContainsSubstring("a.yaml:" + std::to_string(written.line) + ':'));
  CHECK_THAT(said, ContainsSubstring(place.key.path));
  CHECK_THAT(said, ContainsSubstring(expected));
}

// The range's ends, stepped over.
std::vector<std::string> out_of_range(const recipe::Range& range) {
  std::vector<std::string> values;
  if (std::isfinite(range.min)) values.push_back(shortest(range.min_open ? range.min : range.min - 1));
  if (std::isfinite(range.max)) {
    values.push_back(std::to_string(static_cast<std::int64_t>(range.max_open ? range.max : range.max + 1)));
  }
  return values;
}

bool is_top_level_key(const std::string& name) {
  return run::catalogue().find(name) != nullptr;
}

}  // namespace

TEST_CASE("every key: there are many of them, and each says what it means", "[run]") {
  const std::vector<Place> places = every_place();
  CHECK(places.size() > 90);
  for (const Place& place : places) {
    CAPTURE(place.key.path, place.kind);
    CHECK(!place.key.meaning.empty());
  }
}

TEST_CASE("every key: its default is accepted where it stands", "[run]") {
  for (const Place& place : every_place()) {
    const Written written = recipe_with(place.parent(), place.kind, {place.name() + ": " + place.value()});
    CAPTURE(written.text);
    // Some limit must end the run; the others may be null.
    if (place.key.path != "max_steps") CHECK(refusal(written.text).empty());
  }
}

TEST_CASE("every key: misspelt", "[run]") {
  for (const Place& place : every_place()) {
    const std::string wrong = place.name() + "x";
    const Written written = recipe_with(place.parent(), place.kind, {wrong + ": 1"});
    CAPTURE(written.text);
    const std::string said = refusal(written.text);
    CHECK_THAT(said, ContainsSubstring(place_at(written.line, key_column(place)) +
                                       (place.parent().empty() ? wrong : place.parent() + "." + wrong) +
                                       " is not a key of "));
    if (place.name().size() > 3) CHECK_THAT(said, ContainsSubstring("did you mean " + place.name()));
  }
}

TEST_CASE("every key: one level up", "[run]") {
  for (const Place& place : every_place()) {
    if (place.parent().empty() || is_top_level_key(place.name())) continue;
    if (recipe::is_for_tests(place.kind)) continue;  // nobody is told of its keys
    const Written written = recipe_with("", "", {place.name() + ": " + place.value()});
    CAPTURE(written.text);
    const std::string said = refusal(written.text);
    // `lr` alone is a word that other tools use so.
    if (place.name() == "lr") {
      CHECK(said.empty());
      continue;
    }
    CHECK_THAT(said, ContainsSubstring(place_at(written.line, 1) + place.name() +
                                       " is not a key of the recipe; it belongs"));
    CHECK_THAT(said, ContainsSubstring("under " + place.parent()));
  }
}

TEST_CASE("every key: one level down", "[run]") {
  for (const Place& place : every_place()) {
    if (!place.parent().empty() || run::catalogue().find("logging." + place.name()) != nullptr) continue;
    const Written written = recipe_with("logging", "", {place.name() + ": " + place.value()});
    CAPTURE(written.text);
    CHECK_THAT(refusal(written.text),
               ContainsSubstring(place_at(written.line, 3) + "logging." + place.name() +
                                 " is not a key of logging; it belongs"));
  }
}

TEST_CASE("every key: of the wrong type", "[run]") {
  for (const Place& place : every_place()) {
    if (place.is_map()) {
      if (place.key.shorthand.list.empty())
        check_value_refused(place, "[1, 2]", " is a list; expected a map");
      check_value_refused(place, place.key.shorthand.value.empty() ? "12" : "-12", " is ");
    } else {
      check_value_refused(place, "{ a: 1 }", " is a map; expected ");
      if (place.key.type != Key::Type::kText && place.key.type != Key::Type::kPath &&
          place.key.type != Key::Type::kPaths && place.key.type != Key::Type::kTexts) {
        check_value_refused(place, "'a word'", "\"a word\"; expected ");
      }
    }
  }
}

TEST_CASE("every key: out of its range", "[run]") {
  for (const Place& place : every_place()) {
    if (!place.key.range) continue;
    const bool is_list = place.key.type == Key::Type::kNumbers || place.key.type == Key::Type::kIntegers;
    for (const std::string& value : out_of_range(*place.key.range)) {
      check_value_refused(place, is_list ? "[" + value + "]" : value, " is " + value + "; expected ");
    }
    check_value_refused(place, is_list ? "[.nan]" : ".nan", " is .nan; expected ");
  }
}

TEST_CASE("every key: null", "[run]") {
  for (const Place& place : every_place()) {
    if (place.key.takes_null || place.key.type == Key::Type::kPaths) continue;
    check_value_refused(place, "~", " is null; expected ");
  }
}

TEST_CASE("every key: given twice", "[run]") {
  for (const Place& place : every_place()) {
    const std::string line = place.name() + ": " + place.value();
    const Written written = recipe_with(place.parent(), place.kind, {line, line});
    CAPTURE(written.text);
    CHECK_THAT(refusal(written.text),
               ContainsSubstring(concat(place_at(written.line + 1, key_column(place)), place.name(),
                                        " is given twice; the first is in line ", written.line)));
  }
}
