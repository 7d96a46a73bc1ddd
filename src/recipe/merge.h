#pragma once

#include "recipe/node.h"

#include <map>
#include <string>
#include <vector>

namespace gputrain::recipe {

// The keys of the recipe that choose a component, each with the name that holds where none is written ("" if
// there is none): {"optimizer", "sgd"}, {"model", ""}.
using ComponentNames = std::map<std::string, std::string>;

// Puts `overlay` over `root`: maps merge key by key, all else replaces what stood there, null too. Where that
// changes the name of a component, ${env:...} in it put in, the settings of the old one are left out, with a
// notice of those that `overlay` does not give again. Values keep the origin they were written with. Both are
// maps.
void merge(Node& root, Node overlay, const ComponentNames& components, std::vector<std::string>& notices);

// The same where `given`, not `overlay`, holds what is given again.
void merge(Node& root, Node overlay, const Node& given, const ComponentNames& components,
           std::vector<std::string>& notices);

}  // namespace gputrain::recipe
