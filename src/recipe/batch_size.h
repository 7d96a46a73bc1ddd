#pragma once

#include "recipe/node.h"
#include "recipe/recipe.h"

#include <vector>

namespace gputrain::recipe {

// Sets those of micro_batch_size, gradient_accumulation_steps and global_batch_size that are absent, so that
// the first two multiply to the third. Adds a problem, with the arithmetic, where those given cannot; all
// three have a value even then.
void derive_batch_sizes(Recipe& recipe, const Node& root, std::vector<Problem>& problems);

}  // namespace gputrain::recipe
