#pragma once

#include "nn/batch.h"
#include "nn/module.h"
#include "objectives/objective.h"
#include "optim/optimizer.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace gputrain::train {

// Turns the micro-batches of a window into one update of the model. Nothing here waits for the device.
class Update {
 public:
  // flat_buffers: the model's floating-point buffers as one tensor (Module::to); may be undefined.
  Update(nn::Module& model, at::Tensor flat_buffers, const objectives::Objective& objective,
         optim::Optimizer& optimizer, std::optional<double> max_grad_norm);

  // Starts a window; `targets` are those of all its micro-batches, at least 1.
  void begin(std::int64_t targets);

  // Forward and backward of one micro-batch. Its share of the window's mean loss stays on the device.
  void accumulate(const nn::Batch& batch);

  // Multiplies the last micro-batch's loss by NaN before its backward pass: for tests, by fault injection.
  void poison_next() { poison_ = true; }

  // Finite check, clipping, optimizer. Returns, on the device, float32 [micro-batches + 1]: each
  // micro-batch's share of the window's mean loss, then the L2 norm of the gradient before clipping. When one
  // of them is not finite, nothing changes, in this update and in all later ones, and the buffers are as
  // before the window.
  at::Tensor finish(double lr);

 private:
  at::Tensor check_finite(const at::Tensor& values);
  void clip(const at::Tensor& norm, std::vector<at::Tensor>& gradients) const;

  nn::Module& model_;
  const objectives::Objective& objective_;
  optim::Optimizer& optimizer_;
  std::optional<double> max_grad_norm_;
  std::vector<at::Tensor> parameters_;
  at::Tensor flat_buffers_;
  at::Tensor buffers_before_;       // the window
  at::Tensor stopped_;              // float32, 0-d: 1 from the first value that was not finite on
  std::vector<at::Tensor> losses_;  // of this window so far, 0-d
  double scale_ = 1;                // 1 / targets of the window
  bool poison_ = false;
};

}  // namespace gputrain::train
