#pragma once

#include "optim/optimizer.h"

namespace gputrain::optim {

OptimizerComponent sgd();

}  // namespace gputrain::optim
