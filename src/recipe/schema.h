#pragma once

#include "recipe/catalogue.h"
#include "recipe/node.h"

#include <string>

namespace gputrain::recipe {

// The JSON Schema of recipes, for editors and other programs. It knows keys and words as this program spells
// them: those of other tools, and keys with dashes, which load_recipe reads, are refused. What concerns
// several keys is left to load_recipe, apart from what a recipe must have. Numbers are what JSON takes them
// for: `1.0` is an integer there. Draft-07: the newest draft that
// yaml-language-server and Python's jsonschema both know in full; nothing of later ones is needed.
std::string json_schema(const Catalogue& catalogue);

// A value of a recipe as JSON; plain scalars are what read_integer, read_number and read_boolean take them
// for.
std::string json_text(const Node& node);

}  // namespace gputrain::recipe
