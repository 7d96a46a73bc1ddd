#include "optim/ema.h"

#include "optim/support.h"
#include "support/catch.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <limits>

namespace gputrain::optim {
namespace {

// A model of one weight and one running statistic, without the model.
struct Bench {
  explicit Bench(const EmaOptions& options, double weight = 4)
      : parameters{{"w", at::full({1}, weight).set_requires_grad(true)}},
        buffers{{"mean", at::full({2}, 10.0)}, {"count", at::zeros({}, at::kLong)}},
        optimizer(make("sgd", "{lr: 0.1}", {parameters, 1})),
        ema(parameters, buffers, *optimizer, options) {}

  void update(double weight, double applied, double apply = 1) {
    const c10::AutoGradMode no_grad(false);
    parameters[0].second.fill_(weight);
    ema.update(at::full({}, apply), at::full({}, applied));
  }
  double average() const { return ema.averages()[0].second.item<double>(); }

  nn::NamedTensors parameters;
  nn::NamedTensors buffers;
  std::unique_ptr<Optimizer> optimizer;
  Ema ema;
};

std::vector<std::string> names(const nn::NamedTensors& tensors) {
  std::vector<std::string> all;
  for (const auto& [name, value] : tensors) all.push_back(name);
  return all;
}

}  // namespace

TEST_CASE("ema: each update moves the average by its share towards the weights", "[optim]") {
  Bench bench({.decay = 0.75});
  CHECK(bench.average() == 4);
  bench.update(8, 1);
  CHECK(bench.average() == 5);  // 0.75 * 4 + 0.25 * 8
  bench.update(1, 2);
  CHECK(bench.average() == 4);  // 0.75 * 5 + 0.25 * 1
}

TEST_CASE("ema: an update that is not applied changes nothing, whatever the weights hold", "[optim]") {
  Bench bench({.decay = 0.75, .warmup = GENERATE(false, true)});
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    bench.update(bad, 0, /*apply=*/0);
    CHECK(bench.average() == 4);
  }
}

TEST_CASE("ema: the warm-up begins with a decay of 2/11 and ends at the recipe's", "[optim]") {
  Bench bench({.decay = 0.5, .warmup = true}, 0);
  bench.update(11, 1);
  CHECK(bench.average() == Approx(9));  // 2/11 * 0 + 9/11 * 11
  bench.update(0, 2);
  CHECK(bench.average() == Approx(9 * 3.0 / 12));
  // From update 8 on (1 + t) / (10 + t) is half and more.
  bench.update(0, 8);
  CHECK(bench.average() == Approx(9 * 3.0 / 12 * 0.5));
  bench.update(0, 1000);
  CHECK(bench.average() == Approx(9 * 3.0 / 12 * 0.25));
}

TEST_CASE("ema: running statistics are averaged, counters are not", "[optim]") {
  Bench bench({.decay = 0.75});
  bench.buffers[0].second.fill_(20);
  bench.update(4, 1);
  CHECK(names(bench.ema.averages()) == std::vector<std::string>{"w", "mean"});
  CHECK(at::equal(bench.ema.averages()[1].second, at::full({2}, 12.5)));
}

TEST_CASE("ema: over many updates it is the weighted mean that its definition says", "[optim]") {
  Bench bench({.decay = 0.99}, 1);
  double expected = 1;
  for (int t = 1; t <= 500; ++t) {
    const double weight = std::sin(t * 0.1);
    bench.update(weight, t);
    expected = 0.99 * expected + 0.01 * weight;
  }
  CHECK(bench.average() == Approx(expected).margin(1e-6));
}

TEST_CASE("ema: with 16-bit weights it follows the float32 masters where there are any", "[optim]") {
  const auto type = GENERATE(at::kHalf, at::kBFloat16);
  const std::string name = GENERATE("sgd", "muon");
  const nn::NamedTensors parameters = parameters_on(at::kCPU, type, 1);
  const auto optimizer = make(name, "{lr: 1e-4}", {parameters, 1});
  Ema ema(parameters, {}, *optimizer, {.decay = 0.5});
  nn::NamedTensors masters;
  for (const auto& [key, value] : optimizer->state()) {
    if (key.size() > 7 && key.substr(key.size() - 7) == ".master")
      masters.emplace_back(key.substr(0, key.size() - 7), value.clone());
  }
  REQUIRE(masters.size() == parameters.size());
  optimizer->step(gradients_on(at::kCPU, type, 2), inputs_on(at::kCPU, 1e-4, 1));
  ema.update(at::full({}, 1.0), at::full({}, 1.0));
  for (const auto& [key, value] : optimizer->state()) {
    for (const auto& [parameter, before] : masters) {
      if (key != parameter + ".master") continue;
      for (const auto& [averaged, average] : ema.averages()) {
        if (averaged != parameter) continue;
        CHECK(average.sub(before.add(value).div(2)).abs().max().item<double>() < 1e-6);
        // What the weights' own type can tell is coarser.
        CHECK(average.scalar_type() == at::kFloat);
      }
    }
  }
}

TEST_CASE("ema: without masters it follows the 16-bit weights themselves", "[optim]") {
  const nn::NamedTensors parameters = parameters_on(at::kCPU, at::kBFloat16, 1);
  const auto optimizer = make("sgd", "{lr: 0.1, rounding: stochastic}", {parameters, 1});
  Ema ema(parameters, {}, *optimizer, {.decay = 0.5});
  const at::Tensor before =
      parameters[0].second.detach().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  optimizer->step(gradients_on(at::kCPU, at::kBFloat16, 2), inputs_on(at::kCPU, 0.1, 1));
  ema.update(at::full({}, 1.0), at::full({}, 1.0));
  const at::Tensor expected = before.add(parameters[0].second.detach().to(at::kFloat)).div(2);
  CHECK(ema.averages()[0].second.sub(expected).abs().max().item<double>() < 1e-6);
}

TEST_CASE("ema: averaged weights stand in the model for a while, and what was there comes back bit for bit",
          "[optim]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const nn::NamedTensors parameters = parameters_on(at::kCPU, type, 1);
  const auto optimizer = make("sgd", "{lr: 0.1}", {parameters, 1});
  Ema ema(parameters, {}, *optimizer, {.decay = 0.5});
  optimizer->step(gradients_on(at::kCPU, type, 2), inputs_on(at::kCPU, 0.1, 1));
  ema.update(at::full({}, 1.0), at::full({}, 1.0));
  std::vector<at::Tensor> before;
  for (const auto& [name, value] : parameters) before.push_back(value.detach().clone());
  const nn::NamedTensors expected = ema.averaged(parameters);
  const void* const address = parameters[1].second.const_data_ptr();
  const bool throws = GENERATE(false, true);
  try {
    const AveragedWeights averaged(ema);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      CHECK(at::equal(parameters[i].second, expected[i].second));
      CHECK(expected[i].second.scalar_type() == type);
      CHECK_FALSE(at::equal(parameters[i].second, before[i]));
    }
    CHECK(parameters[1].second.const_data_ptr() == address);
    if (throws) throw std::runtime_error("no evaluation today");
  } catch (const std::runtime_error&) {
    CHECK(throws);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    CHECK(at::equal(parameters[i].second, before[i]));
    CHECK(parameters[i].second.requires_grad());
  }
  CHECK(parameters[1].second.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(parameters[1].second.const_data_ptr() == address);
}

}  // namespace gputrain::optim
