#pragma once

#include "objectives/objective.h"

namespace gputrain::objectives {

// Metrics: accuracy, and top5 where there are more than five classes.
ObjectiveComponent cross_entropy();

}  // namespace gputrain::objectives
