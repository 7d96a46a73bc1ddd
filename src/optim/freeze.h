#pragma once

#include "nn/named_tensors.h"

#include <string>
#include <vector>

namespace gputrain::optim {

// Takes the parameters that one of `patterns` (as in groups.h) matches out of training: they require no
// gradient any more. Throws SettingError when a pattern matches none, or nothing is left to train.
void freeze(const nn::NamedTensors& parameters, const std::vector<std::string>& patterns);

// Those that are trained: that require gradients.
nn::NamedTensors trained(const nn::NamedTensors& parameters);

}  // namespace gputrain::optim
