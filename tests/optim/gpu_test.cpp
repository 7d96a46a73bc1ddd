#include "support/gpu.h"

#include "optim/ema.h"
#include "support.h"
#include "support/catch.h"

#include <cmath>

namespace gputrain::optim {
namespace {

const at::Device kGpu(at::kCUDA, 0);

template <class Check>
void for_every_optimizer(const Check& check) {
  for (const OptimizerComponent& component : all_optimizers()) {
    for (const std::string& yaml : variants(component.name)) {
      INFO(component.name << ' ' << yaml);
      check(component.name, yaml);
    }
  }
}

std::vector<at::Tensor> values_of(const nn::NamedTensors& parameters, const Optimizer& optimizer) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : parameters) all.push_back(tensor.detach().clone());
  for (const auto& [name, tensor] : optimizer.state()) all.push_back(tensor.clone());
  return all;
}

}  // namespace

TEST_CASE("every optimizer on the GPU: five steps give the CPU's values", "[optim][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for_every_optimizer([type](const std::string& name, const std::string& yaml) {
    const nn::NamedTensors on_cpu = parameters_on(at::kCPU, type, 1), on_gpu = parameters_on(kGpu, type, 1);
    const auto first = make(name, yaml, {on_cpu, 0}), second = make(name, yaml, {on_gpu, 0});
    for (std::uint64_t step = 1; step <= 5; ++step) {
      const auto number = static_cast<double>(step);
      first->step(gradients_on(at::kCPU, type, 10 + step), inputs_on(at::kCPU, 0.1, number, 1, 0.5));
      second->step(gradients_on(kGpu, type, 10 + step), inputs_on(kGpu, 0.1, number, 1, 0.5));
    }
    // A few roundings a step of values of about 1, those of bfloat16 where muon iterates or weights have it.
    const double tolerance = name == "muon" ? 2e-2 : type == at::kFloat ? 1e-5 : 1e-2;
    const std::vector<at::Tensor> start = random_values(1);
    for (std::size_t i = 0; i < on_cpu.size(); ++i) {
      INFO(on_cpu[i].first);
      const at::Tensor expected = on_cpu[i].second.detach(), found = on_gpu[i].second.detach();
      CHECK(!expected.equal(start[i].to(type)));
      CHECK(found.is_cuda());
      CHECK(found.strides() == expected.strides());
      const double size = std::max(1.0, expected.abs().max().item<double>());
      CHECK(found.cpu().sub(expected).abs().max().item<double>() < tolerance * size);
    }
  });
}

TEST_CASE("every optimizer on the GPU: where apply is 0 nothing changes, state included", "[optim][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  for_every_optimizer([](const std::string& name, const std::string& yaml) {
    const nn::NamedTensors parameters = parameters_on(kGpu, at::kFloat, 1);
    const auto optimizer = make(name, yaml, {parameters, 0});
    for (const int step : {1, 2}) {
      optimizer->step(gradients_on(kGpu, at::kFloat, 10), inputs_on(kGpu, 0.1, step));
      const std::vector<at::Tensor> before = values_of(parameters, *optimizer);
      for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
        std::vector<at::Tensor> gradients = gradients_on(kGpu, at::kFloat, 11);
        for (at::Tensor& one : gradients) one.fill_(value);
        optimizer->step(gradients, inputs_on(kGpu, 0.1, step + 1, 0));
      }
      const std::vector<at::Tensor> after = values_of(parameters, *optimizer);
      for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i].equal(before[i]));
    }
  });
}

TEST_CASE("ema on the GPU: the CPU's bits, and nothing where apply is 0", "[optim][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto averages_on = [type](at::Device device) {
    const nn::NamedTensors parameters = parameters_on(device, type, 1);
    const auto optimizer = make("sgd", "{lr: 0.1, rounding: stochastic}", {parameters, 1});
    Ema ema(parameters, {}, *optimizer, {.decay = 0.9, .warmup = true});
    const at::TensorOptions where(device);
    for (int step = 1; step <= 3; ++step) {
      optimizer->step(gradients_on(device, type, 2), inputs_on(device, 0.1, step));
      ema.update(at::full({}, 1.0, where), at::full({}, static_cast<double>(step), where));
    }
    for (const auto& [name, parameter] : parameters) parameter.detach().fill_(NAN);
    ema.update(at::full({}, 0.0, where), at::full({}, 3.0, where));
    return ema.averages();
  };
  const nn::NamedTensors expected = averages_on(at::kCPU), found = averages_on(kGpu);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(found[i].second.is_cuda());
    CHECK(found[i].second.cpu().equal(expected[i].second));
  }
}

}  // namespace gputrain::optim
