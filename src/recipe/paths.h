#pragma once

#include "recipe/node.h"

#include <string>
#include <string_view>

namespace gputrain::recipe {

// The path of the key in `root` that `path` most likely means: one with the same last part ("optimizer.lr"
// for "lr"), else the most similar one, else the one whose last part is ("optimizer.momentum" for "momentm");
// "" where there is none. Keys that are too long to be typed are left out.
std::string nearest_path(const Node& root, std::string_view path);

}  // namespace gputrain::recipe
