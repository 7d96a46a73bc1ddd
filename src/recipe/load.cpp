#include "recipe/load.h"

#include "base/file.h"
#include "base/text.h"
#include "recipe/batch_size.h"
#include "recipe/bind.h"
#include "recipe/compose.h"
#include "recipe/overrides.h"
#include "recipe/paths.h"
#include "recipe/read.h"
#include "recipe/substitute.h"
#include "recipe/write.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
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

// The kind that `root` gives to a component.
std::string kind_of(const Key& component, const Node& root) {
  const Node* written = find_path(root, component.path + ".name");
  return written != nullptr ? with_environment(written->scalar, process_environment()) : component.value;
}

// The batch numbers, where those that are written are plain numbers; none otherwise.
std::map<std::string, std::string> batch_numbers(const Node& root) {
  std::map<std::string, std::string> numbers;
  Node written;
  written.kind = Node::Kind::kMap;
  for (const char* key : {"micro_batch_size", "gradient_accumulation_steps", "global_batch_size"}) {
    numbers[key] = "";
    const Node* value = root.find(key);
    if (value != nullptr) written.map.push_back(tree_of(key, *value).map.front());
  }
  Recipe recipe;
  std::vector<Problem> problems = recipe::bind(written, "", [&](Visitor& v) { describe(v, recipe); });
  derive_batch_sizes(recipe, written, problems);
  if (!problems.empty()) return {};
  for (const Key& key : keys([&](Visitor& v) { describe(v, recipe); })) {
    if (const auto number = numbers.find(key.path); number != numbers.end()) number->second = key.value;
  }
  return numbers;
}

// The paths of all keys, for hints.
std::vector<std::string> all_paths(const Catalogue& catalogue) {
  std::vector<std::string> paths;
  for (const KnownKey& key : catalogue.known()) paths.push_back(key.path);
  return paths;
}

bool is_given(const Node& root, const char* path) {
  const Node* node = find_path(root, path);
  return node != nullptr && (node->kind != Node::Kind::kNull || node->unreadable);
}

void check_loss_scale(const Node& root, const LossScale& scale, std::vector<Problem>& problems) {
  if (scale.min <= scale.init && scale.init <= scale.max) return;
  problems.push_back({origin_of(root, "loss_scale"),
                      concat("loss_scale.init is ", shortest(scale.init), "; expected loss_scale.min ",
                             shortest(scale.min), " <= init <= loss_scale.max ", shortest(scale.max))});
}

// What is fastest differs from run to run.
void check_deterministic(const Node& root, const Recipe& recipe, std::vector<Problem>& problems) {
  if (!recipe.deterministic || !recipe.cuda.cudnn_benchmark.value_or(false)) return;
  problems.push_back({origin_of(root, "cuda.cudnn_benchmark"),
                      "cuda.cudnn_benchmark is true, which chooses by timing, and deterministic is true; "
                      "expected one of them to be false"});
}

void check_checkpointing(const Node& root, const ActivationCheckpointing& checkpointing,
                         std::vector<Problem>& problems) {
  if (!checkpointing.every || checkpointing.match.empty()) return;
  problems.push_back({origin_of(root, "activation_checkpointing.every"),
                      "activation_checkpointing.every is given, which counts blocks, and match, which names "
                      "layers; expected one of them"});
}

void check(const Node& root, const Recipe& recipe, std::vector<Problem>& problems) {
  check_loss_scale(root, recipe.loss_scale, problems);
  check_deterministic(root, recipe, problems);
  check_checkpointing(root, recipe.activation_checkpointing, problems);
  if (root.unreadable) return;
  const std::array<const char*, 3> limits{"epochs", "max_steps", "max_time"};
  if (std::none_of(limits.begin(), limits.end(), [&](const char* key) { return is_given(root, key); })) {
    problems.push_back({root.origin, "nothing ends the run; expected epochs, max_steps or max_time"});
  }
}

// `loss_scale: 1024` becomes `loss_scale: {fixed: 1024}`.
void expand_shorthands(Node& root, const Catalogue& catalogue) {
  for (const Key& key : catalogue.keys) {
    const auto& [of_value, of_list] = key.shorthand;
    Node* written = of_value.empty() && of_list.empty() ? nullptr : root.find(key.path);
    if (written == nullptr) continue;
    const bool is_value = written->kind == Node::Kind::kScalar && with_missing_space(written->scalar).empty();
    if (is_value && !of_value.empty()) *written = tree_of(of_value, *written);
    if (written->kind == Node::Kind::kList && !of_list.empty()) *written = tree_of(of_list, *written);
  }
}

// A setting of how activations are checkpointed says that they are.
void derive_checkpointing(const Node& root, ActivationCheckpointing& checkpointing) {
  if (is_given(root, "activation_checkpointing.mode")) return;
  if (checkpointing.every || !checkpointing.match.empty()) {
    checkpointing.mode = ActivationCheckpointing::Mode::kFull;
  }
}

}  // namespace

DefaultOf defaults(const Catalogue& catalogue, const Node& root, const std::string& path) {
  return [&catalogue, &root, path](const std::string& key) -> std::optional<std::string> {
    if (key == "name") return escape_references(scalar_text(default_name(path)));
    if (key == "output_dir") return "runs/${name}";
    const auto [parent, last] = split_path(key);
    const Key* holder = catalogue.find(parent);
    const bool is_of_component = holder != nullptr && holder->type == Key::Type::kComponent;
    if (is_of_component && last == "name" && !holder->value.empty()) return holder->value;
    const Key* found = catalogue.find(key, is_of_component ? kind_of(*holder, root) : "");
    const bool is_value = found != nullptr && found->type != Key::Type::kSection &&
                          found->type != Key::Type::kComponent && found->type != Key::Type::kPaths;
    return is_value ? std::optional<std::string>(found->value) : std::nullopt;
  };
}

std::vector<Problem> bind_recipe(const Node& root, Recipe& recipe, const Catalogue& catalogue) {
  std::vector<Problem> problems =
      recipe::bind(root, "", [&](Visitor& v) { describe(v, recipe); }, {}, {"", catalogue.known()});
  derive_batch_sizes(recipe, root, problems);
  derive_checkpointing(root, recipe.activation_checkpointing);
  check(root, recipe, problems);
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
  const DefaultOf default_of = defaults(catalogue, written, path);
  const std::map<std::string, std::string> numbers = batch_numbers(written);
  const DefaultOf known_before = [&](const std::string& key) {
    const auto number = numbers.find(key);
    return number != numbers.end() ? number->second : default_of(key);
  };
  substitute(loaded.root, known_before, process_environment(), loaded.problems, all_paths(catalogue));
  expand_shorthands(loaded.root, catalogue);
  for (Problem& problem : bind_recipe(loaded.root, loaded.recipe, catalogue)) {
    loaded.problems.push_back(std::move(problem));
  }
  sort_by_position(loaded.problems);
  Recipe& recipe = loaded.recipe;
  if (recipe.name.empty()) recipe.name = default_name(path);
  if (recipe.output_dir.empty()) recipe.output_dir = "runs/" + recipe.name;
  recipe.output_dir = expand_home(recipe.output_dir);
  return loaded;
}

}  // namespace gputrain::recipe
