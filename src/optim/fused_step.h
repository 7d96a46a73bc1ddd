#pragma once

#include "kernels/optimizer_step.h"
#include "optim/groups.h"
#include "optim/optimizer.h"

#include <functional>
#include <string>
#include <vector>

namespace gputrain::optim {

// The kernel that makes an update.
using Rule = std::function<void(kernels::OptimizerTable&, const kernels::StepScalars&, kernels::Stream)>;

// The settings of parameter_settings() for those of `context`.
std::vector<ParameterSetting> settings_of(const OptimizerContext& context, const SharedOptions& options,
                                          bool spared_by_default);

// Zeros of float32 for a parameter's state, in the parameter's order of memory.
at::Tensor new_state(const at::Tensor& parameter);

// What a kernel needs to know of a gradient, or of other values that stand where one is expected.
kernels::OptimizerTensor gradient_memory(const at::Tensor& gradient);

// Weights and states as the kernels update them, all parameters in a few launches. Of 16-bit parameters it
// keeps float32 masters unless they are rounded at random.
class FusedStep {
 public:
  // `settings` belong to the parameters of `context`, one each; `states`: the names of state1 and state2, as
  // many as the rule uses.
  FusedStep(const OptimizerContext& context, std::vector<ParameterSetting> settings, Rounding rounding,
            std::vector<std::string> states);

  // As Optimizer::step.
  void step(const std::vector<at::Tensor>& gradients, const StepInputs& inputs, const Rule& rule);

  // p -= lr * lr_scale * (direction + weight_decay * p), for optimizers that compute their directions and
  // states themselves. Where a direction is undefined that parameter is left alone.
  void descend(const std::vector<at::Tensor>& directions, const StepInputs& inputs);

  // The weights of parameter `index` in float32, as exact as they are known.
  at::Tensor weight(std::size_t index) const;

  // State `which` of parameter `index`.
  const at::Tensor& state_of(std::size_t which, std::size_t index) const { return states_[which][index]; }

  // As Optimizer::state.
  nn::NamedTensors state() const;

 private:
  kernels::OptimizerTensor memory_of(std::size_t index, const at::Tensor& gradient) const;

  nn::NamedTensors parameters_;
  std::vector<ParameterSetting> settings_;
  std::uint64_t seed_;
  std::vector<at::Tensor> masters_;  // undefined where the parameter has none
  std::vector<std::string> state_names_;
  std::vector<std::vector<at::Tensor>> states_;  // [name][parameter]
  at::Tensor one_;                               // the gradient_scale of directions
  kernels::OptimizerTable table_;
};

// An optimizer that is a rule of the kernels and nothing else. `states`: as for FusedStep.
std::unique_ptr<Optimizer> fused_optimizer(const OptimizerContext& context, const SharedOptions& options,
                                           bool spared_by_default, std::vector<std::string> states,
                                           Rule rule);

}  // namespace gputrain::optim
