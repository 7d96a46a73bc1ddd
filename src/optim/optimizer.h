#pragma once

#include "nn/named_tensors.h"
#include "recipe/component.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace gputrain::optim {

// The numbers of one update, in the memory of the parameters' device, so that the host need not know them.
// All are float32 and 0-d.
struct StepInputs {
  at::Tensor lr;              // learning rate, before a parameter's lr_scale
  at::Tensor gradient_scale;  // gradients are multiplied by it: unscaling and clipping
  at::Tensor apply;           // 1: the update is made; 0: nothing changes, whatever the gradients hold
  at::Tensor step;            // number of this update among those applied, from 1
};

// Changes parameters by their gradients. Arithmetic and states are float32, whatever the parameters are.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update in place. `gradients`: float32, float16 or bfloat16, in the order of the parameters; where one
  // is undefined that parameter is left alone: no decay, no momentum. Nothing waits for the device.
  virtual void step(const std::vector<at::Tensor>& gradients, const StepInputs& inputs) = 0;

  // The peak learning rate of the recipe, which the schedule scales.
  virtual double peak_lr() const = 0;

  // All that the next update depends on besides the parameters, by parameter: "fc.weight.momentum",
  // "fc.weight.master". Copying into these tensors restores it.
  virtual nn::NamedTensors state() const = 0;
};

struct OptimizerContext {
  // What to train: float32, float16 or bfloat16, dense, all on one device, with their first values in them.
  nn::NamedTensors parameters;
  std::uint64_t seed = 0;  // of stochastic rounding
};

using OptimizerComponent = recipe::Component<std::unique_ptr<Optimizer>, const OptimizerContext&>;

// Every optimizer that a recipe can name. Adding one: a file with its options and build function, and a row
// here. Building throws SettingError where settings do not fit each other or the parameters.
const std::vector<OptimizerComponent>& all_optimizers();

}  // namespace gputrain::optim
