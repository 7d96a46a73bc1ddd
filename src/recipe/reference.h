#pragma once

#include "recipe/catalogue.h"

#include <string>

namespace gputrain::recipe {

// docs/recipe.md: every key of a recipe, for users, as Markdown.
std::string reference(const Catalogue& catalogue);

}  // namespace gputrain::recipe
