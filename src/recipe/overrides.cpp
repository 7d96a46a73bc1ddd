#include "recipe/overrides.h"

#include "base/text.h"
#include "recipe/paths.h"
#include "recipe/read.h"
#include "recipe/words.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace gputrain::recipe {
namespace {

constexpr std::ptrdiff_t kDeepest = 64;

struct Change {
  Origin origin;
  std::string path;               // as typed
  std::optional<Node> tree;       // what a file would hold; absent: deletes
  bool is_unreadable = false;     // the value
  std::vector<std::string> keys;  // of ours, what a deletion is about
};

std::ptrdiff_t depth_of(std::string_view path) {
  return std::count(path.begin(), path.end(), '.') + 1;
}

// What is wrong with the path of an argument, "" if nothing.
std::string explain_path(std::string_view path) {
  if (!is_path(path)) return "expected key=value, key.sub=value or ~key";
  if (depth_of(path) > kDeepest) return concat("the key is nested more than ", kDeepest, " deep");
  if (path.substr(0, path.find('.')) == "base") return "bases belong in a recipe file; change its key base";
  return "";
}

// The keys of ours that a deletion is about.
std::vector<std::string> keys_to_delete(const Change& change, std::vector<std::string>& notices) {
  std::vector<std::string> keys = our_keys(change.path);
  if (keys != std::vector<std::string>{change.path}) {
    const std::string text = concat("read `", change.path, "` as `", join(keys, "`, `", "` and `"), '`');
    notices.push_back(text_of({{change.origin, text}}));
  }
  return keys;
}

// What all changes together set.
Node all_of(const std::vector<Change>& changes) {
  Node all;
  all.kind = Node::Kind::kMap;
  std::vector<std::string> none;
  for (const Change& change : changes) {
    if (change.tree) merge(all, *change.tree, {}, none);
  }
  return all;
}

// Reads the words of each change beside those of all: model_ema=false is about model_ema_decay=0.9, too.
void translate_all(std::vector<Change>& changes, std::vector<Problem>& problems,
                   std::vector<std::string>& notices) {
  const Node beside = all_of(changes);
  for (Change& change : changes) {
    if (!change.tree) continue;
    std::vector<Problem> told;  // of an unreadable value there is no more to say
    std::vector<Problem>& of_words = change.is_unreadable ? told : problems;
    translate_words(*change.tree, beside, of_words, notices);
  }
}

std::vector<Change> read_changes(const std::vector<std::string>& arguments, std::vector<Problem>& problems,
                                 std::vector<std::string>& notices) {
  std::vector<Change> changes;
  for (const std::string& argument : arguments) {
    Change change;
    change.origin.argument = argument;
    const bool deletes = argument.substr(0, 1) == "~";
    const std::size_t equals = argument.find('=');
    if (deletes) {
      change.path = canonical(argument.substr(1));
    } else if (equals != std::string::npos) {
      change.path = canonical(argument.substr(0, equals));
    }
    if (const std::string problem = explain_path(change.path); !problem.empty()) {
      problems.push_back({change.origin, problem});
      continue;
    }
    if (deletes) {
      change.keys = keys_to_delete(change, notices);
    } else {
      const std::string_view value = std::string_view(argument).substr(equals + 1);
      Node read = read_value(value, change.origin, problems);
      change.is_unreadable = read.unreadable;
      change.tree = tree_of(change.path, std::move(read));
    }
    changes.push_back(std::move(change));
  }
  translate_all(changes, problems, notices);
  return changes;
}

// The name that `tree` gives to a component, or nullptr.
const Node* name_in(const Node& tree, const std::string& component) {
  const Node* settings = tree.find(component);
  const Node* name = settings != nullptr ? settings->find("name") : nullptr;
  return name != nullptr && name->kind == Node::Kind::kScalar ? name : nullptr;
}

// The name that holds in the end for each component that the changes name.
std::map<std::string, Node> last_names(const std::vector<Change>& changes, const ComponentNames& components) {
  std::map<std::string, Node> names;
  for (const Change& change : changes) {
    for (const auto& [component, default_name] : components) {
      const Node* name = change.tree ? name_in(*change.tree, component) : nullptr;
      if (name != nullptr) names[component] = *name;
    }
  }
  return names;
}

// Takes a component out of `tree` that a later argument gives another name.
void drop_renamed(Node& tree, const std::map<std::string, Node>& names, std::vector<std::string>& notices) {
  for (const auto& [component, last] : names) {
    const Node* name = name_in(tree, component);
    if (name == nullptr || name->scalar == last.scalar) continue;
    // The same notice as for a file's settings.
    merge(tree, tree_of(component + ".name", last), {{component, ""}}, notices);
  }
}

// Whether `change` asks for a key below a value that has no keys; that is a problem.
bool is_blocked(const Node& root, const Change& change, std::vector<Problem>& problems) {
  const Node* node = &root;
  const Node* tree = &*change.tree;
  std::vector<std::string> parts;
  for (std::ptrdiff_t level = 1; level < depth_of(change.path) && tree->map.size() == 1; ++level) {
    const auto& [key, value] = tree->map.front();
    node = node->find(key.scalar);
    tree = &value;
    if (node == nullptr || node->kind == Node::Kind::kNull || tree->kind != Node::Kind::kMap) return false;
    parts.push_back(key.scalar);
    if (node->kind == Node::Kind::kMap) continue;
    problems.push_back(
        {change.origin, concat(join(parts, "."), " in ", node->origin.text(), " is not a map of keys")});
    return true;
  }
  return false;
}

// Whether there was such a key.
bool erase(Node& root, const std::string& path) {
  const auto [parent_path, key] = split_path(path);
  // find_path() does not change the tree, and neither is root const.
  Node* parent = const_cast<Node*>(find_path(root, parent_path));
  if (parent == nullptr || parent->find(key) == nullptr) return false;
  std::vector<Entry>& entries = parent->map;
  entries.erase(std::find_if(entries.begin(), entries.end(), [&, &key = key](const Entry& entry) {
    return canonical(entry.key.scalar) == key;
  }));
  return true;
}

// Deletes what `change` names. What was there `before` names were applied went with its component's old name.
void unset(Node& root, const Node& before, const Change& change, std::vector<Problem>& problems) {
  bool was_set = false;
  for (const std::string& key : change.keys) {
    const bool was_dropped = find_path(before, key) != nullptr;
    was_set = erase(root, key) || was_dropped || was_set;
  }
  if (was_set) return;
  const std::string guess = nearest_path(root, change.keys.front());
  problems.push_back({change.origin, concat("the recipe does not set ", join(change.keys, ", ", " or "),
                                            guess.empty() ? "" : concat("; did you mean ", guess, '?'))});
}

}  // namespace

void apply_overrides(Node& root, const std::vector<std::string>& arguments, const ComponentNames& components,
                     std::vector<Problem>& problems, std::vector<std::string>& notices) {
  std::vector<Change> changes = read_changes(arguments, problems, notices);
  const std::map<std::string, Node> names = last_names(changes, components);
  for (Change& change : changes) {
    if (change.tree) drop_renamed(*change.tree, names, notices);
  }
  const Node given = all_of(changes);
  Node before;  // what names may drop
  before.kind = Node::Kind::kMap;
  for (const auto& [component, name] : names) {
    const Node* settings = root.find(component);
    // Where there are no settings, there are none to lose.
    if (settings == nullptr || settings->kind != Node::Kind::kMap) continue;
    merge(before, tree_of(component, *settings), {}, notices);
    merge(root, tree_of(component + ".name", name), given, components, notices);
  }
  for (Change& change : changes) {
    if (!change.tree) {
      unset(root, before, change, problems);
    } else if (!is_blocked(root, change, problems)) {
      merge(root, std::move(*change.tree), components, notices);
    }
  }
}

}  // namespace gputrain::recipe
