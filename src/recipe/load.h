#pragma once

#include "recipe/catalogue.h"
#include "recipe/node.h"
#include "recipe/recipe.h"
#include "recipe/substitute.h"

#include <string>
#include <vector>

namespace gputrain::recipe {

struct Loaded {
  Recipe recipe;
  Node root;                         // with bases, overrides and substitutions: what was bound; unreadable
                                     // when a base is
  std::string text;                  // the file as it was given
  std::vector<Problem> problems;     // by position; none: the recipe is good, its components' settings apart
  std::vector<std::string> notices;  // what the user should know and need not change
};

// The recipe in `path`, over the files that it names as `base`, with `arguments` over it: `key.sub=value`
// sets, `~key.sub` deletes. `catalogue` has the keys of components, for their defaults and for hints at keys
// in the wrong place.
Loaded load_recipe(const std::string& path, const std::vector<std::string>& arguments,
                   const Catalogue& catalogue);

// The defaults of keys, those of a component by the kind that `root` names; `path` is the recipe's file.
// Refers to `catalogue` and `root`.
DefaultOf defaults(const Catalogue& catalogue, const Node& root, const std::string& path);

// Binds a recipe that was read, and checks what concerns several keys.
std::vector<Problem> bind_recipe(const Node& root, Recipe& recipe, const Catalogue& catalogue);

}  // namespace gputrain::recipe
