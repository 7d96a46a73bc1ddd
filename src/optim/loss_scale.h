#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace gputrain::optim {

struct LossScaleOptions {
  std::optional<double> fixed = std::nullopt;  // this scale, whatever happens
  double init = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  // updates without overflow before it grows
  double min = 1;
  double max = 16777216;
};

// What losses are multiplied by, so that small gradients do not vanish in float16, and gradients divided by.
// Lives on the device; nothing here waits for it. Source: Micikevicius et al. 2018, section 3.2; as PyTorch's
// GradScaler, within bounds.
class LossScale {
 public:
  // Always 1.
  explicit LossScale(at::Device device);
  LossScale(const LossScaleOptions& options, at::Device device);

  // float32, 0-d.
  const at::Tensor& value() const { return scale_; }

  // All its tensors.
  std::vector<at::Tensor> held() const { return {scale_, growth_tracker_}; }

  // After an update: found_inf, float32, 0-d, is 1 where a gradient was not finite.
  void update(const at::Tensor& found_inf);

 private:
  std::optional<LossScaleOptions> dynamic_;
  at::Tensor scale_;
  at::Tensor growth_tracker_;  // int32, 0-d: updates without overflow since the scale changed
};

}  // namespace gputrain::optim
