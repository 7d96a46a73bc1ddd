#pragma once

#include "nn/init.h"
#include "optim/optimizer.h"
#include "recipe/read.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace gputrain::optim {

inline OptimizerComponent::Bound bound(const std::string& name, const std::string& yaml) {
  std::vector<recipe::Problem> problems;
  const recipe::Choice choice{name, recipe::read_text(yaml + "\n", "a.yaml").root};
  auto made = recipe::choose(all_optimizers(), choice, "optimizer", {}, problems);
  if (!problems.empty()) throw std::invalid_argument(problems.front().text);
  return made;
}

// An optimizer with settings as a recipe has them: "{lr: 0.1}".
inline std::unique_ptr<Optimizer> make(const std::string& name, const std::string& yaml,
                                       const OptimizerContext& context) {
  return bound(name, yaml).build(context);
}

// Unequal shapes: hidden matrices, one a channels-last convolution, vectors, an embedding and a head.
inline std::vector<std::pair<std::string, std::vector<std::int64_t>>> test_shapes() {
  return {{"wte.weight", {6, 2}}, {"conv.weight", {4, 3, 2, 5}}, {"conv.bias", {7}}, {"wide.weight", {2, 3}},
          {"scale", {1}},         {"fc.weight", {5, 2}}};
}

// Normal numbers in those shapes, contiguous.
inline std::vector<at::Tensor> random_values(std::uint64_t seed) {
  const at::Generator generator = nn::init_on_cpu(seed).generator;
  std::vector<at::Tensor> all;
  for (const auto& [name, shape] : test_shapes()) all.push_back(at::randn(shape, generator));
  return all;
}

inline nn::NamedTensors parameters_on(at::Device device, at::ScalarType type, std::uint64_t seed) {
  const std::vector<at::Tensor> values = random_values(seed);
  nn::NamedTensors all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto format = values[i].dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    const at::Tensor value = values[i].to(device, type).contiguous(format).clone();
    all.emplace_back(test_shapes()[i].first, value.set_requires_grad(true));
  }
  return all;
}

inline std::vector<at::Tensor> gradients_on(at::Device device, at::ScalarType type, std::uint64_t seed) {
  std::vector<at::Tensor> all = random_values(seed);
  for (at::Tensor& one : all) one = one.to(device, type);
  return all;
}

inline StepInputs inputs_on(at::Device device, double lr, double step, double apply = 1,
                            double gradient_scale = 1) {
  const at::TensorOptions where(device);
  return {at::full({}, lr, where), at::full({}, gradient_scale, where), at::full({}, apply, where),
          at::full({}, step, where)};
}

// Settings under which kernels take other branches.
inline std::vector<std::string> variants(const std::string& name) {
  std::vector<std::string> all = {"{weight_decay: 0}", "{weight_decay: 0.1}"};
  if (name == "sgd") {
    all.emplace_back("{momentum: 0}");
    all.emplace_back("{nesterov: true, momentum: 0.5, weight_decay: 0.1}");
  }
  if (name == "adam" || name == "adamw") all.emplace_back("{beta2: 0.9, eps: 1e-3, weight_decay: 0.1}");
  if (name == "muon") all.emplace_back("{nesterov: false, ns_steps: 3}");
  return all;
}

}  // namespace gputrain::optim
