#pragma once

#include "recipe/bind.h"
#include "recipe/recipe.h"

#include <map>
#include <string>

namespace gputrain::recipe {

// `recipe` as YAML with every value, defaults included: what resolved.yaml holds. Read again, it gives the
// same recipe. `components` has, for each component key ("optimizer"), the description over its values as
// read (Component::Bound::describe).
std::string write_recipe(const Recipe& recipe, const std::map<std::string, Describe>& components);

}  // namespace gputrain::recipe
