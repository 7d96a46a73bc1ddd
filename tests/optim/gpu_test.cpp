#include "support/gpu.h"

#include "nn/init.h"
#include "optim/optimizer.h"
#include "support/catch.h"
#include "support/settings.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

namespace gputrain::optim {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

const at::Device kGpu(at::kCUDA, 0);

// Settings under which kernels take other branches; an optimizer that is not listed is tested with its
// defaults.
std::vector<Settings> variants(const std::string& name) {
  std::vector<Settings> all = {{}};
  if (name == "sgd") {
    all.push_back({{"momentum", "0"}});
    all.push_back({{"nesterov", "true"}, {"weight_decay", "0.1"}});
  }
  if (name == "adamw") all.push_back({{"weight_decay", "0"}, {"beta2", "0.9"}, {"eps", "1e-3"}});
  return all;
}

// Unequal shapes; the last one is a convolution's weight, channels-last in memory.
std::vector<at::Tensor> random_values(std::uint64_t seed) {
  const at::Generator generator = nn::init_on_cpu(seed).generator;
  std::vector<at::Tensor> all;
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 3, 5}, {7}, {1}, {4, 3, 2, 5}}) {
    all.push_back(at::randn(shape, generator));
  }
  all.back() = all.back().contiguous(at::MemoryFormat::ChannelsLast);
  return all;
}

nn::NamedTensors parameters_on(at::Device device, std::uint64_t seed) {
  nn::NamedTensors all;
  for (const at::Tensor& value : random_values(seed)) {
    all.emplace_back("p" + std::to_string(all.size()), value.to(device).set_requires_grad(true));
  }
  return all;
}

void set_gradients(const nn::NamedTensors& parameters, std::uint64_t seed) {
  const std::vector<at::Tensor> gradients = random_values(seed);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].second;
    parameter.mutable_grad() = gradients[i].to(parameter.device());
  }
}

void fill_gradients(const nn::NamedTensors& parameters, double value) {
  for (const auto& [name, parameter] : parameters) {
    parameter.mutable_grad() = at::full_like(parameter.detach(), value);
  }
}

at::Tensor flag(at::Device device, bool raised) {
  const at::TensorOptions where(device);
  return raised ? at::ones({}, where) : at::zeros({}, where);
}

template <class Check>
void for_every_optimizer(const Check& check) {
  for (const OptimizerComponent& component : all_optimizers()) {
    for (const Settings& values : variants(component.name)) {
      std::string shown;
      for (const auto& [key, value] : values) shown += " " + key + "=" + value;
      INFO(component.name << shown);
      check([&](const nn::NamedTensors& parameters) {
        return bound(all_optimizers(), component.name, values).build(parameters);
      });
    }
  }
}

}  // namespace

TEST_CASE("every optimizer on the GPU: five steps give the CPU's values", "[optim][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  for_every_optimizer([](const auto& make) {
    const nn::NamedTensors on_cpu = parameters_on(at::kCPU, 1), on_gpu = parameters_on(kGpu, 1);
    const auto first = make(on_cpu), second = make(on_gpu);
    for (std::uint64_t step = 0; step < 5; ++step) {
      set_gradients(on_cpu, 10 + step);
      set_gradients(on_gpu, 10 + step);
      first->step(0.1, flag(at::kCPU, false));
      second->step(0.1, flag(kGpu, false));
    }
    const std::vector<at::Tensor> start = random_values(1);
    for (std::size_t i = 0; i < on_cpu.size(); ++i) {
      INFO(on_cpu[i].first);
      const at::Tensor expected = on_cpu[i].second.detach(), found = on_gpu[i].second.detach();
      REQUIRE(expected.sub(start[i]).abs().max().item<double>() > 1e-2);
      CHECK(found.is_cuda());
      CHECK(found.strides() == expected.strides());
      // A few roundings a step of values of about 1.
      CHECK(found.cpu().sub(expected).abs().max().item<double>() < 1e-5);
    }
  });
}

TEST_CASE("every optimizer on the GPU: where something was not finite nothing changes, state included",
          "[optim][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  for_every_optimizer([](const auto& make) {
    const nn::NamedTensors skipping = parameters_on(kGpu, 1), plain = parameters_on(kGpu, 1);
    const auto first = make(skipping), second = make(plain);
    for (std::uint64_t step = 0; step < 3; ++step) {
      fill_gradients(skipping, step == 1 ? INFINITY : NAN);
      first->step(0.1, flag(kGpu, true));
      set_gradients(skipping, 10 + step);
      set_gradients(plain, 10 + step);
      first->step(0.1, flag(kGpu, false));
      second->step(0.1, flag(kGpu, false));
      for (std::size_t i = 0; i < plain.size(); ++i) {
        INFO("step " << step << ", " << plain[i].first);
        CHECK(skipping[i].second.equal(plain[i].second));
      }
    }
  });
}

}  // namespace gputrain::optim
