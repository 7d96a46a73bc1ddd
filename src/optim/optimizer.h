#pragma once

#include "nn/module.h"
#include "recipe/component.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace gputrain::optim {

// Changes parameters by their gradients, all of them in a few kernels.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update in place. Parameters without a gradient are left alone: no decay, no momentum.
  // found_inf: float32, 0-d, on the parameters' device; where it holds 1 nothing changes, momentum
  // and step count included, without the host having to know.
  virtual void step(double lr, const at::Tensor& found_inf) = 0;

  // The peak learning rate of the recipe, which the schedule scales.
  virtual double peak_lr() const = 0;
};

// The parameters to train: float32, all on one device.
using OptimizerComponent = recipe::Component<std::unique_ptr<Optimizer>, const nn::NamedTensors&>;

// Every optimizer that a recipe can name. Adding one: a file with its options and build function, and a row
// here.
const std::vector<OptimizerComponent>& all_optimizers();

}  // namespace gputrain::optim
