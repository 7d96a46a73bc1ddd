#include "optim/optimizer.h"

#include "support/catch.h"
#include "support/settings.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <functional>
#include <vector>

namespace gputrain::optim {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<Optimizer> make(const std::string& name, const Settings& values,
                                const nn::NamedTensors& parameters) {
  return bound(all_optimizers(), name, values).build(parameters);
}

at::Tensor parameter(const std::vector<float>& values) {
  return at::tensor(values).set_requires_grad(true);
}

const at::Tensor& no_inf() {
  static const at::Tensor zero = at::zeros({});
  return zero;
}

// The reference in float64: one value, its gradients in turn.
using Reference = std::function<void(double& p, double g, std::int64_t step)>;

void check_against(const std::string& name, const Settings& values, double lr, const Reference& reference) {
  const std::vector<double> gradients = {0.5, -2.0, 0.25, 3.0, -0.125};
  at::Tensor p = parameter({1.0F, -2.0F, 0.0F});
  const auto optimizer = make(name, values, {{"p", p}});
  std::vector<double> expected = {1.0, -2.0, 0.0};
  std::vector<Reference> states(3, reference);  // each value has state of its own
  for (std::size_t step = 0; step < gradients.size(); ++step) {
    p.mutable_grad() = at::tensor({gradients[step], -gradients[step], 2 * gradients[step]}, at::kFloat);
    optimizer->step(lr, no_inf());
    const double factors[] = {1, -1, 2};
    for (std::size_t i = 0; i < 3; ++i) {
      states[i](expected[i], factors[i] * gradients[step], static_cast<std::int64_t>(step) + 1);
      CHECK(p[static_cast<std::int64_t>(i)].item<double>() == Approx(expected[i]).epsilon(1e-5).margin(1e-6));
    }
  }
}

}  // namespace

TEST_CASE("sgd: momentum and weight decay, against the formula in float64", "[optim]") {
  check_against("sgd", {{"momentum", "0.9"}, {"weight_decay", "0.01"}}, 0.1,
                [m = 0.0](double& p, double g, std::int64_t) mutable {
                  m = 0.9 * m + g + 0.01 * p;
                  p -= 0.1 * m;
                });
}

TEST_CASE("sgd: Nesterov looks ahead along the new momentum", "[optim]") {
  check_against("sgd", {{"momentum", "0.5"}, {"nesterov", "true"}}, 0.1,
                [m = 0.0](double& p, double g, std::int64_t) mutable {
                  m = 0.5 * m + g;
                  p -= 0.1 * (g + 0.5 * m);
                });
}

TEST_CASE("sgd: without momentum it is plain gradient descent", "[optim]") {
  check_against("sgd", {{"momentum", "0"}}, 0.1, [](double& p, double g, std::int64_t) { p -= 0.1 * g; });
}

TEST_CASE("adamw: against algorithm 2 of the paper in float64", "[optim]") {
  check_against("adamw", {{"weight_decay", "0.1"}, {"beta2", "0.99"}}, 0.01,
                [m = 0.0, v = 0.0](double& p, double g, std::int64_t step) mutable {
                  p -= 0.01 * 0.1 * p;
                  m = 0.9 * m + 0.1 * g;
                  v = 0.99 * v + 0.01 * g * g;
                  const auto t = static_cast<double>(step);
                  p -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
                });
}

TEST_CASE("every optimizer: where something was not finite nothing changes, state included", "[optim]") {
  for (const OptimizerComponent& component : all_optimizers()) {
    INFO(component.name);
    at::Tensor skipping = parameter({1.0F, 2.0F});
    at::Tensor plain = parameter({1.0F, 2.0F});
    const auto first = make(component.name, {}, {{"p", skipping}});
    const auto second = make(component.name, {}, {{"p", plain}});
    const std::vector<float> gradients = {1, -3, 2};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      skipping.mutable_grad() = at::full({2}, NAN);
      first->step(0.1, at::ones({}));
      skipping.mutable_grad() = at::full({2}, gradients[i]);
      plain.mutable_grad() = at::full({2}, gradients[i]);
      first->step(0.1, no_inf());
      second->step(0.1, no_inf());
    }
    CHECK(skipping.equal(plain));
  }
}

TEST_CASE("every optimizer: a parameter without a gradient is left alone", "[optim]") {
  for (const OptimizerComponent& component : all_optimizers()) {
    INFO(component.name);
    at::Tensor used = parameter({1.0F});
    at::Tensor unused = parameter({5.0F});
    const auto optimizer = make(component.name, {{"weight_decay", "0.5"}}, {{"a", unused}, {"b", used}});
    used.mutable_grad() = at::ones({1});
    optimizer->step(0.1, no_inf());
    CHECK(unused.item<float>() == 5);
    CHECK(used.item<float>() < 1);
  }
}

TEST_CASE("every optimizer: a zero gradient gives no NaN", "[optim]") {
  for (const OptimizerComponent& component : all_optimizers()) {
    INFO(component.name);
    at::Tensor p = parameter({1.0F});
    const auto optimizer = make(component.name, {{"weight_decay", "0"}}, {{"p", p}});
    p.mutable_grad() = at::zeros({1});
    optimizer->step(0.1, no_inf());
    CHECK(p.item<float>() == 1);
  }
}

}  // namespace gputrain::optim
