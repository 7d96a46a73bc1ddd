#include "nn/module.h"

#include "nn/recompute.h"
#include "nn/saved_tensors.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/MemoryFormat.h>

#include <stdexcept>

namespace gputrain::nn {
namespace {

constexpr std::int64_t kAlignment =
    64;  // elements: each buffer starts on 256 bytes, as if allocated by itself

std::int64_t padded(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

// Moves the float32 ones of `buffers` into one tensor on `device`.
at::Tensor flatten(const NamedTensors& buffers, at::Device device) {
  std::int64_t total = 0;
  for (const auto& [name, value] : buffers) {
    if (value.is_floating_point()) total += padded(value.numel());
  }
  if (total == 0) return {};
  at::Tensor flat = at::zeros({total}, at::TensorOptions(device).dtype(at::kFloat));
  std::int64_t offset = 0;
  for (const auto& [name, value] : buffers) {
    if (!value.is_floating_point()) continue;
    at::Tensor part = flat.narrow(0, offset, value.numel()).view(value.sizes());
    part.copy_(value);
    value.set_data(part);
    offset += padded(value.numel());
  }
  return flat;
}

thread_local CallWatch::Watch call_watch;

}  // namespace

CallWatch::CallWatch(Watch watch) {
  call_watch = std::move(watch);
}

CallWatch::~CallWatch() {
  call_watch = nullptr;
}

Module::Module() {
  install_engine();
}
Module::~Module() = default;

template <class Visit>
void Module::walk(const std::string& prefix, const Visit& visit) const {
  visit(prefix, *this);
  for (const auto& [name, child] : children_) child->walk(prefix + name + ".", visit);
}

at::Tensor Module::operator()(const at::Tensor& input) {
  const LayerCall call(*this);
  at::Tensor output =
      region_ ? (*region_)([this](const at::Tensor& x) { return run(x); }, input) : run(input);
  if (call_watch && !is_recomputing()) call_watch(*this, output);
  return output;
}

at::Tensor Module::run(const at::Tensor& input) {
  if (!is_dear()) return forward(input);
  const auto first = [&] {
    const at::Tensor output = forward(input);
    return Remembered{output, {output}};
  };
  return remember(input, /*is_dear=*/true, first,
                  [](const std::vector<at::Tensor>& memo) { return memo.front(); });
}

void Module::recompute(const std::string& name, Recompute how) {
  if (is_called()) {
    region_ = std::make_unique<Region>(name, *this, how);
    return;
  }
  for (auto& [child_name, child] : children_) child->recompute(name + "." + child_name, how);
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> all;
  for (auto& [name, child] : children_) {
    all.emplace_back(name, child.get());
    for (const auto& [inner, module] : child->named_modules()) all.emplace_back(name + "." + inner, module);
  }
  return all;
}

std::string Module::name_of(const Module& inner) const {
  std::string found = "the model";
  walk("", [&](const std::string& prefix, const Module& module) {
    if (&module == &inner && !prefix.empty()) found = prefix.substr(0, prefix.size() - 1);
  });
  return found;
}

NamedTensors Module::named_parameters() const {
  NamedTensors all;
  walk("", [&all](const std::string& prefix, const Module& module) {
    for (const auto& [name, value] : module.parameters_) all.emplace_back(prefix + name, value);
  });
  return all;
}

NamedTensors Module::named_buffers() const {
  NamedTensors all;
  walk("", [&all](const std::string& prefix, const Module& module) {
    for (const auto& [name, value] : module.buffers_) all.emplace_back(prefix + name, value);
  });
  return all;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, value] : named_parameters()) count += value.numel();
  return count;
}

void Module::count_passes(std::int64_t passes) {
  add_passes(passes);
  for (auto& [name, child] : children_) child->count_passes(passes);
}

void Module::train(bool on) {
  training_ = on;
  for (auto& [name, child] : children_) child->train(on);
}

at::Tensor Module::to(at::Device device, bool channels_last, at::ScalarType weights) {
  const c10::AutoGradMode no_grad(false);
  walk("", [&](const std::string& /*prefix*/, const Module& module) {
    for (const auto& [name, value] : module.parameters_) {
      const bool reorder = channels_last && value.dim() == 4;
      const at::ScalarType type = module.keeps_float32() ? at::kFloat : weights;
      value.set_data(value.to(value.options().device(device).dtype(type), /*non_blocking=*/false,
                              /*copy=*/false,
                              reorder ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Preserve));
    }
  });
  return flatten(named_buffers(), device);
}

at::Tensor Module::add_parameter(const std::string& name, at::Tensor value) {
  value.set_requires_grad(true);
  parameters_.emplace_back(name, value);
  return value;
}

at::Tensor Module::add_buffer(const std::string& name, at::Tensor value) {
  buffers_.emplace_back(name, value);
  return value;
}

Module& Group::push(std::unique_ptr<Module> child) {
  order_.push_back(child.get());
  return add(std::to_string(order_.size() - 1), std::move(child));
}

at::Tensor Group::forward(const at::Tensor& /*input*/) {
  throw std::logic_error("a group of modules was called");
}

at::Tensor Sequential::forward(const at::Tensor& input) {
  at::Tensor x = input;
  for (Module* layer : order_) x = (*layer)(x);
  return x;
}

}  // namespace gputrain::nn
