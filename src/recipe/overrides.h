#pragma once

#include "recipe/keys.h"
#include "recipe/node.h"

#include <string>
#include <vector>

namespace gputrain::recipe {

// Changes `root` as the arguments say: `key.sub=value` sets, `~key.sub` deletes. A component whose name
// changes loses the settings it had for the old one, with a notice; so names are applied first, wherever they
// stand.
void apply_overrides(Node& root, const std::vector<std::string>& arguments, const std::vector<Key>& known,
                     std::vector<Problem>& problems, std::vector<std::string>& notices);

}  // namespace gputrain::recipe
