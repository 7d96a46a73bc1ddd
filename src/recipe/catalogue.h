#pragma once

#include "recipe/keys.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gputrain::recipe {

// Names that begin so are seams for tests, and left out of what users are told.
inline constexpr std::string_view kForTests = "testing.";

inline bool is_for_tests(std::string_view kind) {
  return kind.substr(0, kForTests.size()) == kForTests;
}

// One kind of a component: adamw of optimizer.
struct Kind {
  std::string name;
  std::string meaning;
  std::vector<Key> keys;  // its own, with their whole path: "optimizer.lr"
};

// Every key that a recipe can have, with its default: what hints, schema, documentation and completion are
// made from.
struct Catalogue {
  std::vector<Key> keys;                           // the recipe's own, components among them
  std::map<std::string, std::vector<Kind>> kinds;  // of each component: "optimizer"

  // All keys that users are told of, for hints.
  std::vector<KnownKey> known() const;

  // The kinds of a component that users are told of.
  std::vector<const Kind*> shown_kinds(const std::string& component) const;

  // The key `name` of a component, with its kinds as words.
  Key name_key(const std::string& component) const;

  // nullptr: there is none.
  const Kind* find_kind(std::string_view component, std::string_view name) const;

  // The key at "optimizer.lr" of the kind `name` of its component, or of the recipe's own; nullptr: there is
  // none.
  const Key* find(std::string_view path, std::string_view kind = {}) const;
};

// The key `name` of a component: "optimizer.name". Its value is the component's, its words are left empty.
Key name_key(const Key& component);

// The keys of Recipe and `base`, without kinds.
Catalogue recipe_catalogue();

}  // namespace gputrain::recipe
