#pragma once

#include "recipe/merge.h"
#include "recipe/node.h"

#include <string>
#include <vector>

namespace gputrain::recipe {

// Changes `root` as the arguments say: `key.sub=value` sets, `~key.sub` deletes, each as merge() would put a
// file with that one key over it, words of other tools translated. The last argument wins. A component whose
// name changes loses the settings it had for the old one, so names are applied first, wherever they stand.
void apply_overrides(Node& root, const std::vector<std::string>& arguments, const ComponentNames& components,
                     std::vector<Problem>& problems, std::vector<std::string>& notices);

}  // namespace gputrain::recipe
