#include "recipe/merge.h"

#include "base/text.h"
#include "recipe/substitute.h"

#include <cstddef>
#include <unordered_map>
#include <utility>

namespace gputrain::recipe {
namespace {

void put_over(Node& value, Node overlay);

void merge_maps(Node& map, Node overlay) {
  // Node::find() for each key would take long for maps of thousands.
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < map.map.size(); ++i) places.emplace(canonical(map.map[i].key.scalar), i);
  for (Entry& entry : overlay.map) {
    const auto [place, is_new] = places.emplace(canonical(entry.key.scalar), map.map.size());
    if (is_new) {
      map.map.push_back(std::move(entry));
    } else {
      put_over(map.map[place->second].value, std::move(entry.value));
    }
  }
}

void put_over(Node& value, Node overlay) {
  if (value.kind == Node::Kind::kMap && overlay.kind == Node::Kind::kMap) {
    merge_maps(value, std::move(overlay));
  } else {
    value = std::move(overlay);
  }
}

// Leaves only the name of the component. Returns the settings that `given` does not have.
std::vector<std::string> drop_settings(Node& component, const Node* given) {
  std::vector<std::string> missing;
  std::vector<Entry> kept;
  for (Entry& entry : component.map) {
    const std::string key = canonical(entry.key.scalar);
    if (key == "name") {
      kept.push_back(std::move(entry));
    } else if (given == nullptr || given->find(key) == nullptr) {
      missing.push_back(std::move(entry.key.scalar));
    }
  }
  component.map = std::move(kept);
  return missing;
}

void drop_settings_of_old_name(Node& component, const Node& overlay, const Node* given,
                               const std::string& default_name, std::vector<std::string>& notices) {
  const Node* new_name = overlay.find("name");
  if (new_name == nullptr || new_name->kind != Node::Kind::kScalar) return;
  const Node* written = component.find("name");
  const EnvironmentLookup environment = process_environment();
  const std::string old_name =
      written != nullptr ? with_environment(written->scalar, environment) : default_name;
  // Settings without any name wait for one, as in a base that leaves the choice to others.
  if (old_name.empty() || old_name == with_environment(new_name->scalar, environment)) return;
  const std::vector<std::string> missing = drop_settings(component, given);
  if (missing.empty()) return;
  notices.push_back(concat(new_name->origin.text(), ": the settings of ", old_name,
                           " are left out: ", join(missing, ", ", " and ")));
}

}  // namespace

void merge(Node& root, Node overlay, const Node& given, const ComponentNames& components,
           std::vector<std::string>& notices) {
  for (const auto& [key, default_name] : components) {
    const Node* over = overlay.find(key);
    if (over == nullptr || over->kind != Node::Kind::kMap) continue;
    Node* component = root.find(key);
    if (component == nullptr || component->kind != Node::Kind::kMap) continue;
    drop_settings_of_old_name(*component, *over, given.find(key), default_name, notices);
  }
  put_over(root, std::move(overlay));
}

void merge(Node& root, Node overlay, const ComponentNames& components, std::vector<std::string>& notices) {
  const Node given = overlay;
  merge(root, std::move(overlay), given, components, notices);
}

}  // namespace gputrain::recipe
