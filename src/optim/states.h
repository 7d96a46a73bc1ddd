#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace gputrain::optim {

// `updated` takes the place of `state` where `apply` (float32, 0-d) holds 1; else it stays as it was, bit for
// bit, whatever is in `updated`. Nothing waits for the device.
void keep(const at::Tensor& apply, const at::Tensor& updated, const at::Tensor& state);

// 1 - decay^step, which an average that began at zero is divided by: float32, 0-d.
at::Tensor bias_correction(double decay, const at::Tensor& step);

}  // namespace gputrain::optim
