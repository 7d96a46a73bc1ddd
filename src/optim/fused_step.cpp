#include "optim/fused_step.h"

#include "device/current_stream.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>

#include <stdexcept>
#include <utility>

namespace gputrain::optim {
namespace {

kernels::Element element_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return kernels::Element::kFloat32;
    case at::kHalf:
      return kernels::Element::kFloat16;
    case at::kBFloat16:
      return kernels::Element::kBfloat16;
    default:
      throw std::invalid_argument("optimizers take float32, float16 and bfloat16 tensors");
  }
}

// Whether two dense tensors of one shape have their elements in the same order of memory. Strides of
// dimensions of one element say nothing.
bool same_order(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) > 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

// `gradient` in the order of memory of its parameter.
at::Tensor in_order_of(const at::Tensor& parameter, const at::Tensor& gradient) {
  if (!gradient.defined() || same_order(parameter, gradient)) return gradient;
  return at::empty_like(parameter, gradient.options().requires_grad(false)).copy_(gradient);
}

c10::Device device_of(const OptimizerContext& context) {
  return context.parameters.empty() ? c10::Device(c10::kCPU) : context.parameters.front().second.device();
}

}  // namespace

std::vector<ParameterSetting> settings_of(const OptimizerContext& context, const SharedOptions& options,
                                          bool spared_by_default) {
  std::vector<ParameterShape> shapes;
  for (const auto& [name, parameter] : context.parameters) shapes.push_back({name, parameter.dim()});
  return parameter_settings(shapes, options, spared_by_default);
}

at::Tensor new_state(const at::Tensor& parameter) {
  return at::zeros_like(parameter, parameter.options().dtype(at::kFloat).requires_grad(false));
}

kernels::OptimizerTensor gradient_memory(const at::Tensor& gradient) {
  kernels::OptimizerTensor memory;
  memory.gradient = gradient.data_ptr();
  memory.gradient_type = element_of(gradient);
  memory.count = gradient.numel();
  return memory;
}

FusedStep::FusedStep(const OptimizerContext& context, std::vector<ParameterSetting> settings,
                     Rounding rounding, std::vector<std::string> states)
    : settings_(std::move(settings)),
      seed_(context.seed),
      state_names_(std::move(states)),
      states_(state_names_.size()),
      one_(at::ones({}, at::TensorOptions(device_of(context)).dtype(at::kFloat))),
      table_(device_of(context).is_cuda()) {
  for (const auto& [name, given] : context.parameters) {
    const at::Tensor parameter = given.detach();
    parameters_.emplace_back(name, parameter);
    const bool has_master =
        element_of(parameter) != kernels::Element::kFloat32 && rounding == Rounding::kNearest;
    masters_.push_back(has_master ? parameter.to(at::kFloat) : at::Tensor());
    for (std::vector<at::Tensor>& state : states_) state.push_back(new_state(parameter));
  }
}

kernels::OptimizerTensor FusedStep::memory_of(std::size_t index, const at::Tensor& gradient) const {
  const at::Tensor& parameter = parameters_[index].second;
  kernels::OptimizerTensor memory =
      gradient.defined() ? gradient_memory(gradient) : kernels::OptimizerTensor();
  if (element_of(parameter) == kernels::Element::kFloat32) {
    memory.weight = parameter.data_ptr<float>();
  } else {
    memory.low = parameter.data_ptr();
    memory.low_type = element_of(parameter);
    if (masters_[index].defined()) memory.weight = masters_[index].data_ptr<float>();
  }
  if (!states_.empty()) memory.state1 = states_[0][index].data_ptr<float>();
  if (states_.size() > 1) memory.state2 = states_[1][index].data_ptr<float>();
  memory.count = parameter.numel();
  memory.lr_scale = static_cast<float>(settings_[index].lr_scale);
  memory.weight_decay = static_cast<float>(settings_[index].weight_decay);
  return memory;
}

void FusedStep::step(const std::vector<at::Tensor>& gradients, const StepInputs& inputs, const Rule& rule) {
  std::vector<kernels::OptimizerTensor> memory;
  std::vector<at::Tensor> in_order;  // lives until the kernels are queued
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    in_order.push_back(in_order_of(parameters_[i].second, gradients.at(i)));
    memory.push_back(memory_of(i, in_order.back()));
  }
  if (memory.empty()) return;  // an optimizer's part may have no parameters
  const c10::Device device = parameters_.front().second.device();
  const c10::DeviceGuard guard(device);
  const kernels::Stream stream = device.is_cuda() ? device::current_stream(device) : nullptr;
  table_.set(memory, stream);
  kernels::StepScalars scalars;
  scalars.lr = inputs.lr.data_ptr<float>();
  scalars.gradient_scale = inputs.gradient_scale.data_ptr<float>();
  scalars.apply = inputs.apply.data_ptr<float>();
  scalars.step = inputs.step.data_ptr<float>();
  scalars.seed = seed_;
  rule(table_, scalars, stream);
}

void FusedStep::descend(const std::vector<at::Tensor>& directions, const StepInputs& inputs) {
  step(directions, {inputs.lr, one_, inputs.apply, inputs.step},
       [](kernels::OptimizerTable& table, const kernels::StepScalars& scalars, kernels::Stream stream) {
         table.sgd({}, scalars, stream);
       });
}

at::Tensor FusedStep::weight(std::size_t index) const {
  return masters_[index].defined() ? masters_[index] : parameters_[index].second.to(at::kFloat);
}

nn::NamedTensors FusedStep::state() const {
  nn::NamedTensors all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i].first;
    for (std::size_t s = 0; s < states_.size(); ++s) {
      all.emplace_back(name + '.' + state_names_[s], states_[s][i]);
    }
    if (masters_[i].defined()) all.emplace_back(name + ".master", masters_[i]);
  }
  return all;
}

namespace {

class FusedOptimizer : public Optimizer {
 public:
  FusedOptimizer(FusedStep fused, double peak_lr, Rule rule)
      : fused_(std::move(fused)), peak_lr_(peak_lr), rule_(std::move(rule)) {}

  void step(const std::vector<at::Tensor>& gradients, const StepInputs& inputs) override {
    fused_.step(gradients, inputs, rule_);
  }
  double peak_lr() const override { return peak_lr_; }
  nn::NamedTensors state() const override { return fused_.state(); }

 private:
  FusedStep fused_;
  double peak_lr_;
  Rule rule_;
};

}  // namespace

std::unique_ptr<Optimizer> fused_optimizer(const OptimizerContext& context, const SharedOptions& options,
                                           bool spared_by_default, std::vector<std::string> states,
                                           Rule rule) {
  return std::make_unique<FusedOptimizer>(FusedStep(context, settings_of(context, options, spared_by_default),
                                                    options.rounding, std::move(states)),
                                          options.lr, std::move(rule));
}

}  // namespace gputrain::optim
