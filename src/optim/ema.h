#pragma once

#include "kernels/optimizer_step.h"
#include "nn/named_tensors.h"
#include "optim/optimizer.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace gputrain::optim {

struct EmaOptions {
  double decay = 0;     // 0 <= decay < 1
  bool warmup = false;  // update t (from 1) uses min(decay, (1 + t) / (10 + t))
};

// Exponential moving averages, in float32, of a model's weights and running statistics: with each applied
// update average = decay * average + (1 - decay) * value. They begin as the values are when it is made.
//
// Running statistics are averaged as weights are (timm, torchvision): activations of averaged weights lie
// between those of the weights they are made of. What is not floating-point has no average.
// Source of the warm-up: TensorFlow's ExponentialMovingAverage with num_updates.
class Ema {
 public:
  // parameters: those that are trained, float32, float16 or bfloat16; where `optimizer` keeps a float32
  // master of one, the average follows that. buffers: all of the model. All in the memory of one device; the
  // tensors change in place and are never replaced.
  Ema(const nn::NamedTensors& parameters, const nn::NamedTensors& buffers, const Optimizer& optimizer,
      const EmaOptions& options);

  // Takes in the values after an update. apply, applied: float32, 0-d, on the device: 0 leaves the averages
  // as they are, whatever the values; updates applied so far, this one included. Waits for nothing.
  void update(const at::Tensor& apply, const at::Tensor& applied);

  // By the model's names. Together with the count of applied updates they are all of the state.
  const nn::NamedTensors& averages() const { return averages_; }

  // `tensors` of the model with averages in place of those that have one, in their types. Averages are on the
  // host, so that no memory of the device is needed.
  nn::NamedTensors averaged(const nn::NamedTensors& tensors) const;

 private:
  friend class AveragedWeights;

  EmaOptions options_;
  nn::NamedTensors averages_;        // float32
  std::vector<at::Tensor> values_;   // of the model, as averages_
  std::vector<at::Tensor> sources_;  // what is averaged, as averages_: values_, or masters of them
  at::Tensor share_;                 // of the new value: float32, 0-d
  at::Tensor minus_one_;             // float32, 0-d
  kernels::OptimizerTable table_;
};

// While it lives, the model has the averages in place of its weights and running statistics; with its end,
// also by an exception, those come back, bit for bit. Values are copied: handles and addresses stay.
class AveragedWeights {
 public:
  explicit AveragedWeights(const Ema& ema);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> before_;
};

}  // namespace gputrain::optim
