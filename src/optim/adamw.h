#pragma once

#include "optim/optimizer.h"

namespace gputrain::optim {

OptimizerComponent adamw();

}  // namespace gputrain::optim
