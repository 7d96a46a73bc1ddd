#include "recipe/overrides.h"

#include "base/text.h"
#include "recipe/read.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace gputrain::recipe {
namespace {

struct Change {
  Origin origin;
  std::string path;
  std::optional<std::string> value;  // absent: deletes
};

bool is_path(std::string_view path) {
  const auto is_allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  return !path.empty() && path.front() != '.' && path.back() != '.' &&
         path.find("..") == std::string_view::npos && std::all_of(path.begin(), path.end(), is_allowed);
}

std::vector<Change> read_changes(const std::vector<std::string>& arguments, std::vector<Problem>& problems) {
  std::vector<Change> changes;
  for (const std::string& argument : arguments) {
    Change change;
    change.origin.argument = argument;
    const std::size_t equals = argument.find('=');
    if (argument.substr(0, 1) == "~") {
      change.path = canonical(argument.substr(1));
    } else if (equals != std::string::npos) {
      change.path = canonical(argument.substr(0, equals));
      change.value = argument.substr(equals + 1);
    }
    if (is_path(change.path)) {
      changes.push_back(std::move(change));
    } else {
      problems.push_back({change.origin, "expected key=value, key.sub=value or ~key"});
    }
  }
  return changes;
}

// The component whose name `change` sets, or nullptr.
const Key* renamed_component(const Change& change, const std::vector<Key>& known) {
  if (!change.value) return nullptr;
  const auto found = std::find_if(known.begin(), known.end(), [&](const Key& key) {
    return key.is_component && key.path + ".name" == change.path;
  });
  return found == known.end() ? nullptr : &*found;
}

void drop_settings_of_old_name(Node& root, const Change& change, const Key& component,
                               std::vector<std::string>& notices) {
  Node* settings = root.find(component.path);
  if (settings == nullptr || settings->kind != Node::Kind::kMap) return;
  const Node* name = settings->find("name");
  const std::string old_name = name != nullptr ? name->scalar : component.default_name;
  if (old_name == *change.value) return;
  std::vector<std::string> dropped;
  std::vector<Entry> kept;
  for (Entry& entry : settings->map) {
    if (canonical(entry.key.scalar) == "name") {
      kept.push_back(std::move(entry));
    } else {
      dropped.push_back(entry.key.scalar);
    }
  }
  settings->map = std::move(kept);
  if (dropped.empty()) return;
  notices.push_back(concat(change.origin.text(), ": the settings of ", old_name,
                           " are left out: ", join(dropped, ", ", " and ")));
}

Node& child(Node& map, const std::string& key, const Origin& origin) {
  if (Node* found = map.find(key)) return *found;
  Node name;
  name.kind = Node::Kind::kScalar;
  name.origin = origin;
  name.scalar = key;
  map.map.push_back({std::move(name), Node{}});
  return map.map.back().value;
}

void set(Node& root, const Change& change, std::vector<Problem>& problems) {
  Node* node = &root;
  for (std::size_t start = 0; start < change.path.size();) {
    if (node->kind == Node::Kind::kNull) {
      node->kind = Node::Kind::kMap;
      node->origin = change.origin;
    }
    if (node->kind != Node::Kind::kMap) {
      problems.push_back({change.origin, concat(change.path.substr(0, start - 1), " in ", node->origin.text(),
                                                " is not a map of keys")});
      return;
    }
    const std::size_t end = std::min(change.path.find('.', start), change.path.size());
    node = &child(*node, change.path.substr(start, end - start), change.origin);
    start = end + 1;
  }
  *node = read_value(*change.value, change.origin, problems);
}

void unset(Node& root, const Change& change, std::vector<Problem>& problems) {
  const std::size_t dot = change.path.rfind('.');
  const std::string parent_path = dot == std::string::npos ? "" : change.path.substr(0, dot);
  const std::string key = change.path.substr(dot == std::string::npos ? 0 : dot + 1);
  // find_path() does not change the tree, and neither is root const.
  Node* parent = const_cast<Node*>(find_path(root, parent_path));
  if (parent == nullptr || parent->find(key) == nullptr) {
    problems.push_back({change.origin, concat("the recipe does not set ", change.path)});
    return;
  }
  std::vector<Entry>& entries = parent->map;
  entries.erase(std::find_if(entries.begin(), entries.end(),
                             [&](const Entry& entry) { return canonical(entry.key.scalar) == key; }));
}

}  // namespace

void apply_overrides(Node& root, const std::vector<std::string>& arguments, const std::vector<Key>& known,
                     std::vector<Problem>& problems, std::vector<std::string>& notices) {
  std::vector<Change> changes = read_changes(arguments, problems);
  std::stable_partition(changes.begin(), changes.end(),
                        [&](const Change& change) { return renamed_component(change, known) != nullptr; });
  for (const Change& change : changes) {
    if (const Key* component = renamed_component(change, known)) {
      drop_settings_of_old_name(root, change, *component, notices);
    }
    if (change.value) {
      set(root, change, problems);
    } else {
      unset(root, change, problems);
    }
  }
}

}  // namespace gputrain::recipe
