#include "recipe/load.h"

#include "base/file.h"
#include "base/text.h"
#include "recipe/batch_size.h"
#include "recipe/bind.h"
#include "recipe/compose.h"
#include "recipe/overrides.h"
#include "recipe/substitute.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

namespace gputrain::recipe {
namespace {

ComponentNames component_names(const Catalogue& catalogue) {
  ComponentNames names;
  for (const Key& key : catalogue.keys) {
    if (key.type == Key::Type::kComponent) names[key.path] = key.value;
  }
  return names;
}

std::string default_name(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

// The defaults of keys, those of a component by the name that `root` gives it.
DefaultOf defaults(const Catalogue& catalogue, const Node& root, const std::string& path) {
  return [&catalogue, &root, path](const std::string& key) -> std::optional<std::string> {
    if (key == "name") return default_name(path);
    const std::string component = key.substr(0, key.find('.'));
    const Key* of_component = catalogue.find(component);
    const Node* written = find_path(root, component + ".name");
    const std::string kind = written != nullptr        ? written->scalar
                             : of_component != nullptr ? of_component->value
                                                       : "";
    if (key == component + ".name" && !kind.empty()) return kind;
    const Key* found = catalogue.find(key, kind);
    const bool is_value = found != nullptr && found->type != Key::Type::kSection &&
                          found->type != Key::Type::kComponent && found->type != Key::Type::kPaths;
    return is_value ? std::optional<std::string>(found->value) : std::nullopt;
  };
}

bool is_given(const Node& root, const char* key) {
  const Node* node = root.find(key);
  return node != nullptr && node->kind != Node::Kind::kNull;
}

void check(const Node& root, std::vector<Problem>& problems) {
  const std::array<const char*, 3> limits{"epochs", "max_steps", "max_time"};
  if (std::none_of(limits.begin(), limits.end(), [&](const char* key) { return is_given(root, key); })) {
    problems.push_back({root.origin, "nothing ends the run; expected epochs, max_steps or max_time"});
  }
}

// A value that could not be put in is no number either, and that is the same mistake.
void append_new(std::vector<Problem>& problems, std::vector<Problem> more) {
  std::set<std::string> places;
  for (const Problem& problem : problems) {
    if (problem.origin.line > 0) places.insert(problem.origin.text());
  }
  for (Problem& problem : more) {
    if (places.count(problem.origin.text()) == 0) problems.push_back(std::move(problem));
  }
}

}  // namespace

std::vector<Problem> bind_recipe(const Node& root, Recipe& recipe, const Catalogue& catalogue) {
  std::vector<Problem> problems =
      recipe::bind(root, "", [&](Visitor& v) { describe(v, recipe); }, {}, {"", catalogue.known()});
  derive_batch_sizes(recipe, root, problems);
  check(root, problems);
  return problems;
}

Loaded load_recipe(const std::string& path, const std::vector<std::string>& arguments,
                   const Catalogue& catalogue) {
  const ComponentNames components = component_names(catalogue);
  Composed composed = compose(path, components);
  Loaded loaded;
  loaded.text = std::move(composed.text);
  loaded.root = std::move(composed.root);
  loaded.problems = std::move(composed.problems);
  loaded.notices = std::move(composed.notices);
  // Without a map there is nothing to bind, and what would be missing is not the mistake.
  if (loaded.root.kind != Node::Kind::kMap) return loaded;
  apply_overrides(loaded.root, arguments, components, loaded.problems, loaded.notices);
  const Node written = loaded.root;
  substitute(loaded.root, defaults(catalogue, written, path), process_environment(), loaded.problems);
  append_new(loaded.problems, bind_recipe(loaded.root, loaded.recipe, catalogue));
  sort_by_position(loaded.problems);
  Recipe& recipe = loaded.recipe;
  if (recipe.name.empty()) recipe.name = default_name(path);
  if (recipe.output_dir.empty()) recipe.output_dir = "runs/" + recipe.name;
  recipe.output_dir = expand_home(recipe.output_dir);
  return loaded;
}

}  // namespace gputrain::recipe
