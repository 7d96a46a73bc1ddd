#pragma once

#include "recipe/keys.h"
#include "recipe/node.h"
#include "recipe/recipe.h"

#include <map>
#include <string>
#include <vector>

namespace gputrain::recipe {

// `recipe` as YAML with every value, defaults included: what resolved.yaml holds. Read again, it gives the
// same recipe. `components` has, for each component key ("optimizer"), the description over its values as
// read (Component::Bound::describe). With `root`, what it was read from, a comment says where each value
// comes from: "recipe.yaml:3", "argument seed=2", "default".
std::string write_recipe(const Recipe& recipe, const std::map<std::string, Describe>& components,
                         const Node* root = nullptr);

// The keys of a recipe and of the components it names, in their order, with the values they have.
// `components`: as for write_recipe; an empty description is that of a component without keys.
std::vector<Key> keys_with_values(const Recipe& recipe, const std::map<std::string, Describe>& components);

// Where the value of `key` comes from: "recipe.yaml:3:5", "argument seed=2", "default", or "auto" where the
// default is auto, and the value what that stands for.
std::string source_text(const Node& root, const Key& key, const std::string& default_value);

// Text as a YAML scalar that reads back as that text: in quotes where it needs them.
std::string scalar_text(const std::string& text);

}  // namespace gputrain::recipe
