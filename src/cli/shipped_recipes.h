#pragma once

#include <string>
#include <vector>

namespace gputrain::cli {

// A file of configs/, part of the program.
struct ShippedRecipe {
  std::string name;  // the file's, without .yaml
  std::string text;
};

// By name. cmake/EmbedRecipes.cmake writes the definition.
const std::vector<ShippedRecipe>& shipped_recipes();

}  // namespace gputrain::cli
