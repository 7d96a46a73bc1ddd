#include "recipe/catalogue.h"

#include "recipe/compose.h"
#include "recipe/recipe.h"

#include <algorithm>
#include <utility>

namespace gputrain::recipe {
namespace {

const Key* find_in(const std::vector<Key>& keys, std::string_view path) {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; });
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace

std::vector<KnownKey> Catalogue::known() const {
  std::vector<KnownKey> all;
  for (const Key& key : keys) all.push_back({key.path, ""});
  for (const auto& [component, of_it] : kinds) {
    for (const Kind* kind : shown_kinds(component)) {
      for (const Key& key : kind->keys) all.push_back({key.path, kind->name});
    }
  }
  return all;
}

std::vector<const Kind*> Catalogue::shown_kinds(const std::string& component) const {
  std::vector<const Kind*> shown;
  const auto all = kinds.find(component);
  if (all == kinds.end()) return shown;
  for (const Kind& kind : all->second) {
    if (!is_for_tests(kind.name)) shown.push_back(&kind);
  }
  return shown;
}

Key Catalogue::name_key(const std::string& component) const {
  const Key* own = find_in(keys, component);
  Key key = recipe::name_key(own != nullptr ? *own : Key{});
  for (const Kind* kind : shown_kinds(component)) key.words.push_back(kind->name);
  return key;
}

const Kind* Catalogue::find_kind(std::string_view component, std::string_view name) const {
  const auto all = kinds.find(std::string(component));
  if (all == kinds.end()) return nullptr;
  const auto found = std::find_if(all->second.begin(), all->second.end(),
                                  [&](const Kind& kind) { return kind.name == name; });
  return found == all->second.end() ? nullptr : &*found;
}

const Key* Catalogue::find(std::string_view path, std::string_view kind) const {
  if (const Key* own = find_in(keys, path)) return own;
  const Kind* chosen = find_kind(path.substr(0, path.find('.')), kind);
  return chosen == nullptr ? nullptr : find_in(chosen->keys, path);
}

Key name_key(const Key& component) {
  Key key;
  key.path = component.path + ".name";
  key.type = Key::Type::kWord;
  key.value = component.value;
  key.meaning = "kind of " + component.path;
  return key;
}

Catalogue recipe_catalogue() {
  Recipe defaults;
  Catalogue catalogue{{base_key()}, {}};
  for (Key& key : keys([&](Visitor& v) { describe(v, defaults); })) catalogue.keys.push_back(std::move(key));
  return catalogue;
}

}  // namespace gputrain::recipe
