#include "recipe/load.h"

#include "base/file.h"
#include "base/text.h"
#include "recipe/bind.h"
#include "recipe/keys.h"
#include "recipe/overrides.h"
#include "recipe/read.h"
#include "recipe/scalars.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

namespace gputrain::recipe {
namespace {

std::vector<Key> keys_of_recipe() {
  return keys([](Visitor& v) {
    Recipe defaults;
    describe(v, defaults);
  });
}

bool is_device(std::string_view device) {
  if (device == "auto" || device == "cpu" || device == "cuda") return true;
  constexpr std::string_view kIndexed = "cuda:";
  if (device.substr(0, kIndexed.size()) != kIndexed) return false;
  const std::string_view index = device.substr(kIndexed.size());
  const bool digits =
      std::all_of(index.begin(), index.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits && !index.empty() && index.size() <= 2;
}

bool is_given(const Node& root, const char* key) {
  const Node* node = root.find(key);
  return node != nullptr && node->kind != Node::Kind::kNull;
}

void check(const Node& root, const Recipe& recipe, std::vector<Problem>& problems) {
  if (!is_device(recipe.device)) {
    problems.push_back({origin_of(root, "device"),
                        concat("device is ", recipe.device, "; expected auto, cpu, cuda or cuda:N")});
  }
  const std::array<const char*, 3> limits{"epochs", "max_steps", "max_time"};
  if (std::none_of(limits.begin(), limits.end(), [&](const char* key) { return is_given(root, key); })) {
    problems.push_back({root.origin, "nothing ends the run; expected epochs, max_steps or max_time"});
  }
}

}  // namespace

std::vector<Problem> bind_recipe(const Node& root, Recipe& recipe,
                                 const std::vector<std::string>& component_keys) {
  Hints hints;
  for (const Key& key : keys_of_recipe()) hints.elsewhere.push_back(key.path);
  hints.elsewhere.insert(hints.elsewhere.end(), component_keys.begin(), component_keys.end());
  std::vector<Problem> problems = recipe::bind(
      root, "", [&](Visitor& v) { describe(v, recipe); }, {}, hints);
  check(root, recipe, problems);
  return problems;
}

Loaded load_recipe(const std::string& path, const std::vector<std::string>& arguments,
                   const std::vector<std::string>& component_keys) {
  Document document = read_document(path);
  Loaded loaded;
  loaded.text = std::move(document.text);
  loaded.root = std::move(document.root);
  loaded.problems = std::move(document.problems);
  // Without a map there is nothing to bind, and what would be missing is not the mistake.
  if (loaded.root.kind != Node::Kind::kMap) return loaded;
  apply_overrides(loaded.root, arguments, keys_of_recipe(), loaded.problems, loaded.notices);
  for (Problem& problem : bind_recipe(loaded.root, loaded.recipe, component_keys)) {
    loaded.problems.push_back(std::move(problem));
  }
  sort_by_position(loaded.problems);
  Recipe& recipe = loaded.recipe;
  if (recipe.name.empty()) recipe.name = std::filesystem::path(path).stem().string();
  if (recipe.output_dir.empty()) recipe.output_dir = "runs/" + recipe.name;
  recipe.output_dir = expand_home(recipe.output_dir);
  return loaded;
}

}  // namespace gputrain::recipe
