#include "optim/ema.h"

#include "device/current_stream.h"
#include "optim/fused_step.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/full.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <string>

namespace gputrain::optim {
namespace {

at::Tensor scalar_on(at::Device device, double value) {
  return at::full({}, value, at::TensorOptions(device).dtype(at::kFloat));
}

kernels::Stream stream_of(at::Device device) {
  return device.is_cuda() ? device::current_stream(device) : nullptr;
}

}  // namespace

Ema::Ema(const nn::NamedTensors& parameters, const nn::NamedTensors& buffers, const Optimizer& optimizer,
         const EmaOptions& options)
    : options_(options), table_(parameters.front().second.is_cuda()) {
  const nn::NamedTensors state = optimizer.state();
  const std::map<std::string, at::Tensor> states(state.begin(), state.end());
  const auto follow = [&](const std::string& name, const at::Tensor& value) {
    const auto master = states.find(name + ".master");
    values_.push_back(value.detach());
    sources_.push_back(master != states.end() ? master->second : values_.back());
    averages_.emplace_back(name, new_state(values_.back()).copy_(sources_.back()));
  };
  for (const auto& [name, parameter] : parameters) follow(name, parameter);
  for (const auto& [name, buffer] : buffers) {
    if (buffer.is_floating_point()) follow(name, buffer);
  }
  const at::Device device = values_.front().device();
  share_ = scalar_on(device, 1 - options_.decay);
  minus_one_ = scalar_on(device, -1);

  std::vector<kernels::OptimizerTensor> memory;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    kernels::OptimizerTensor one = gradient_memory(sources_[i]);
    one.weight = averages_[i].second.data_ptr<float>();
    one.weight_decay = 1;
    memory.push_back(one);
  }
  const c10::DeviceGuard guard(device);
  table_.set(memory, stream_of(device));
}

// One step of gradient descent: with the value times -1 as gradient and a weight decay of 1,
// average -= share * (average - value). So all averages take one launch and one pass over memory, and a
// window that is not applied is not even read, whatever it holds.
void Ema::update(const at::Tensor& apply, const at::Tensor& applied) {
  if (options_.warmup) {
    // 1 - (1 + t) / (10 + t)
    share_.copy_(applied.add(10).reciprocal().mul(9).clamp_min(1 - options_.decay));
  }
  kernels::StepScalars scalars;
  scalars.lr = share_.data_ptr<float>();
  scalars.gradient_scale = minus_one_.data_ptr<float>();
  scalars.apply = apply.data_ptr<float>();
  scalars.step = applied.data_ptr<float>();
  const c10::DeviceGuard guard(share_.device());
  table_.sgd({}, scalars, stream_of(share_.device()));
}

nn::NamedTensors Ema::averaged(const nn::NamedTensors& tensors) const {
  const std::map<std::string, at::Tensor> averages(averages_.begin(), averages_.end());
  nn::NamedTensors all;
  for (const auto& [name, value] : tensors) {
    const auto found = averages.find(name);
    all.emplace_back(name, found == averages.end() ? value : found->second.cpu().to(value.scalar_type()));
  }
  return all;
}

AveragedWeights::AveragedWeights(const Ema& ema) : values_(ema.values_) {
  const c10::AutoGradMode no_grad(false);
  // All memory is taken before anything changes.
  for (const at::Tensor& value : values_) before_.push_back(value.clone());
  std::vector<at::Tensor> averages;
  for (const auto& [name, average] : ema.averages_) averages.push_back(average);
  at::_foreach_copy_(values_, averages);
}

AveragedWeights::~AveragedWeights() {
  const c10::AutoGradMode no_grad(false);
  try {
    at::_foreach_copy_(values_, before_);
  } catch (...) {
    // Only a device that failed before cannot copy, and that failure is on its way to the user, or comes with
    // the device's next call. Another exception out of here would end the process without a word of it.
  }
}

}  // namespace gputrain::optim
