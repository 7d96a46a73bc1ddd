#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace gputrain::nn {

// Names are those of PyTorch's state_dict: "layer1.0.bn2.running_var".
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace gputrain::nn
