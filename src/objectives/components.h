#pragma once

#include "objectives/objective.h"

// The rows of all.cpp.
namespace gputrain::objectives {

// Metrics: accuracy, and top5 where there are more than five classes.
ObjectiveComponent cross_entropy();

}  // namespace gputrain::objectives
