#pragma once

#include "nn/precision.h"

#include <cstdint>

namespace gputrain::run {

// Floating-point operations of convolutions and matrix products in one forward pass of `input` through
// `model`, a multiply-add counted as two; everything else is small beside them. Runs the pass, in evaluation
// mode and without gradients.
std::int64_t forward_flops(nn::Module& model, const at::Tensor& input, const nn::Precision& precision = {});

}  // namespace gputrain::run
