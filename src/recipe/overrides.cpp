#include "recipe/overrides.h"

#include "base/text.h"
#include "recipe/paths.h"
#include "recipe/read.h"
#include "recipe/words.h"

#include <algorithm>
#include <cctype>
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
  std::string path;          // as typed; of a deletion with words translated
  std::optional<Node> tree;  // what a file would hold, words translated; absent: deletes
};

bool is_path(std::string_view path) {
  const auto is_allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  return !path.empty() && path.front() != '.' && path.back() != '.' &&
         path.find("..") == std::string_view::npos && std::all_of(path.begin(), path.end(), is_allowed);
}

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

// {a: {b: value}} for "a.b".
Node tree_of(std::string_view path, Node value) {
  const Origin origin = value.origin;
  while (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    Node key;
    key.kind = Node::Kind::kScalar;
    key.origin = origin;
    key.scalar = path.substr(dot + 1);  // npos + 1 is 0
    Node map;
    map.kind = Node::Kind::kMap;
    map.origin = origin;
    map.map.push_back({std::move(key), std::move(value)});
    value = std::move(map);
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return value;
}

// The path of the only key in a tree; `path` where a word became several keys.
std::string only_path(const Node& tree, const std::string& path) {
  std::vector<std::string> parts;
  for (const Node* node = &tree; node->kind == Node::Kind::kMap; node = &node->map.front().value) {
    if (node->map.size() != 1) return path;
    parts.push_back(canonical(node->map.front().key.scalar));
  }
  return join(parts, ".");
}

std::string translated(const std::string& path, const Origin& origin, std::vector<std::string>& notices) {
  Node value;
  value.origin = origin;
  Node tree = tree_of(path, std::move(value));
  std::vector<Problem> about_the_value;  // there is none
  translate_words(tree, about_the_value, notices);
  return only_path(tree, path);
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
      change.path = translated(change.path, change.origin, notices);
    } else {
      const std::string_view value = std::string_view(argument).substr(equals + 1);
      change.tree = tree_of(change.path, read_value(value, change.origin, problems));
      translate_words(*change.tree, problems, notices);
    }
    changes.push_back(std::move(change));
  }
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

void unset(Node& root, const Change& change, std::vector<Problem>& problems) {
  const std::size_t dot = change.path.rfind('.');
  const std::string parent_path = dot == std::string::npos ? "" : change.path.substr(0, dot);
  const std::string key = change.path.substr(dot + 1);  // npos + 1 is 0
  // find_path() does not change the tree, and neither is root const.
  Node* parent = const_cast<Node*>(find_path(root, parent_path));
  if (parent == nullptr || parent->find(key) == nullptr) {
    const std::string guess = nearest_path(root, change.path);
    problems.push_back({change.origin, concat("the recipe does not set ", change.path,
                                              guess.empty() ? "" : concat("; did you mean ", guess, '?'))});
    return;
  }
  std::vector<Entry>& entries = parent->map;
  entries.erase(std::find_if(entries.begin(), entries.end(),
                             [&](const Entry& entry) { return canonical(entry.key.scalar) == key; }));
}

}  // namespace

void apply_overrides(Node& root, const std::vector<std::string>& arguments, const ComponentNames& components,
                     std::vector<Problem>& problems, std::vector<std::string>& notices) {
  std::vector<Change> changes = read_changes(arguments, problems, notices);
  const std::map<std::string, Node> names = last_names(changes, components);
  for (const auto& [component, name] : names) {
    const Node* settings = root.find(component);
    // Where there are no settings, there are none to lose.
    if (settings == nullptr || settings->kind != Node::Kind::kMap) continue;
    merge(root, tree_of(component + ".name", name), components, notices);
  }
  for (Change& change : changes) {
    if (!change.tree) {
      unset(root, change, problems);
    } else if (drop_renamed(*change.tree, names, notices); !is_blocked(root, change, problems)) {
      merge(root, std::move(*change.tree), components, notices);
    }
  }
}

}  // namespace gputrain::recipe
