#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gputrain::nn {

// What one forward pass consumes.
struct Batch {
  // Images: [samples, channels, height, width], float32, channels-last in memory. Tokens: [samples,
  // positions], int64.
  at::Tensor input;
  at::Tensor
      target;  // class numbers: [samples], or one per position [samples, positions]; int64, same device
  std::vector<std::int64_t> sample_ids;  // rows of the split, on the host
  std::int64_t targets = 0;              // targets that enter the loss, counted on the host

  std::int64_t samples() const { return static_cast<std::int64_t>(sample_ids.size()); }
};

}  // namespace gputrain::nn
