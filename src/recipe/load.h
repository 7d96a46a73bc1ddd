#pragma once

#include "recipe/node.h"
#include "recipe/recipe.h"

#include <string>
#include <vector>

namespace gputrain::recipe {

struct Loaded {
  Recipe recipe;
  Node root;                         // with overrides, for origin_of()
  std::string text;                  // the file as it was given
  std::vector<Problem> problems;     // by position; none: the recipe is good, its components' settings apart
  std::vector<std::string> notices;  // what the user should know and need not change
};

// The recipe in `path` with `arguments` over it: `key.sub=value` sets, `~key.sub` deletes.
// `component_keys` ("optimizer.momentum") are known besides Recipe's own, for hints at keys in the wrong
// place.
Loaded load_recipe(const std::string& path, const std::vector<std::string>& arguments = {},
                   const std::vector<std::string>& component_keys = {});

// Binds a recipe that was read, and checks what concerns several keys.
std::vector<Problem> bind_recipe(const Node& root, Recipe& recipe,
                                 const std::vector<std::string>& component_keys = {});

}  // namespace gputrain::recipe
