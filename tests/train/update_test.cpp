#include "train/update.h"

#include "nn/layers.h"
#include "support/catch.h"
#include "support/settings.h"
#include "train/trace.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <optional>

namespace gputrain::train {
namespace {

// Prediction w for every sample; objective 1/2 (w - target)^2. By hand: gradients and norms follow at a
// glance.
class Constant : public nn::Module {
 public:
  Constant() : w_(add_parameter("w", at::zeros({1}))) {}

 protected:
  at::Tensor forward(const at::Tensor& input) override { return w_.expand({input.size(0)}); }

 private:
  at::Tensor w_;
};

class Square : public objectives::Objective {
 public:
  at::Tensor loss_sum(const at::Tensor& output, const at::Tensor& target) const override {
    return output.sub(target).square().sum().mul(0.5);
  }
  at::Tensor metric_sums(const at::Tensor&, const at::Tensor&) const override { return at::zeros({0}); }
  const std::vector<std::string>& metrics() const override {
    static const std::vector<std::string> none;
    return none;
  }
};

nn::Batch batch(double target, std::int64_t count) {
  return {at::zeros({count, 1}), at::ones({count}).mul(target),
          std::vector<std::int64_t>(static_cast<std::size_t>(count)), count};
}

// A window of one micro-batch with that target: its outcome.
struct Made {
  double norm, applied, scale;
};

// One weight, moved by plain gradient descent.
struct Bench {
  explicit Bench(const UpdateOptions& options, at::ScalarType type = at::kFloat, double ema_decay = 0) {
    model.to(at::kCPU, true, type);
    optimizer =
        bound(optim::all_optimizers(), "sgd", {{"momentum", "0"}}).build({model.named_parameters(), 1});
    if (ema_decay > 0) {
      ema.emplace(model.named_parameters(), nn::NamedTensors(), *optimizer,
                  optim::EmaOptions{.decay = ema_decay});
    }
    update.emplace(model, at::Tensor(), objective, *optimizer, options, ema ? &*ema : nullptr);
  }

  Made window(const std::vector<double>& targets, const LearningRates& rates, bool poisoned = false) {
    update->begin(static_cast<std::int64_t>(targets.size()), targets.size());
    for (const double target : targets) {
      if (poisoned) update->poison_next();
      update->accumulate(batch(target, 1));
    }
    const at::Tensor values = update->finish(rates).to(at::kDouble);
    return {values[-4].item<double>(), values[-3].item<double>(), values[-2].item<double>()};
  }
  double weight() const { return model.named_parameters()[0].second.item<double>(); }

  Constant model;
  Square objective;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<optim::Ema> ema;
  std::optional<Update> update;
};

UpdateOptions scaled(const optim::LossScaleOptions& scale) {
  UpdateOptions options;
  options.loss_scale = scale;
  return options;
}

}  // namespace

// One target of 8 and three of 0, in two micro-batches: mean loss 1/2 * 64 / 4 = 8, gradient -8 / 4 = -2.
// Means of means would give -4, a sum -8.
TEST_CASE("update: a window's gradient is the sum over its targets divided by their number", "[train]") {
  Bench bench({});
  bench.update->begin(4, 2);
  bench.update->accumulate(batch(8, 1));
  bench.update->accumulate(batch(0, 3));
  const at::Tensor values = bench.update->finish({0, {0.5}});
  REQUIRE(values.numel() == 2 + static_cast<std::int64_t>(kOutcomes));
  CHECK(values[0].item<double>() + values[1].item<double>() == Approx(8));
  CHECK(values[2].item<double>() == Approx(2));
  CHECK(values[3].item<double>() == 1);
  CHECK(values[4].item<double>() == 1);
  CHECK(bench.weight() == Approx(1));  // 0 - 0.5 * -2
}

TEST_CASE("update: rates far beyond those handed over last repeat the last one", "[train]") {
  Bench bench({});
  bench.window({1}, {0, {1, 0.5}});  // 0 + 1 * 1
  bench.window({0}, {0, {1, 0.5}});  // 1 - 0.5 * 1
  bench.window({0}, {0, {1, 0.5}});  // 0.5 - 0.5 * 0.5
  bench.window({0}, {3, {0.25}});    // 0.25 - 0.25 * 0.25
  CHECK(bench.weight() == Approx(0.1875));
}

TEST_CASE("update: where passes cannot be captured, it goes on without graphs", "[train]") {
  Bench bench({});
  CHECK_THROWS(bench.update->capture(batch(0, 1), 2));
  CHECK(bench.update->graph_bytes() == 0);
  CHECK(bench.window({3}, {0, {0.5}}).norm == Approx(3));
  CHECK(bench.weight() == Approx(1.5));
}

TEST_CASE("update: a loss scale changes neither the norm nor the update, clipped or not", "[train]") {
  for (const bool clipped : {false, true}) {
    for (const double scale : {1.0, 1024.0, 65536.0}) {
      UpdateOptions options = scaled({.fixed = scale});
      if (clipped) options.max_grad_norm = 0.1;
      Bench bench(options);
      const Made made = bench.window({3}, {0, {0.5}});
      CHECK(made.norm == Approx(3));
      CHECK(made.scale == scale);
      CHECK(bench.weight() == Approx(clipped ? 0.5 * 0.1 : 0.5 * 3).epsilon(1e-5));
    }
  }
}

TEST_CASE("update: gradients are unscaled once, also over several micro-batches", "[train]") {
  Bench plain({}), with_scale(scaled({.fixed = 1024.0}));
  for (Bench* bench : {&plain, &with_scale}) bench->window({3, -1, 0.5, 8}, {0, {0.25}});
  CHECK(with_scale.weight() == plain.weight());
}

TEST_CASE("update: single values are clipped before the norm is scaled, and after the scale is taken out",
          "[train]") {
  UpdateOptions options = scaled({.fixed = 1024.0});
  options.max_grad_value = 0.5;
  Bench bench(options);
  CHECK(bench.window({3}, {0, {1}}).norm == Approx(3));
  CHECK(bench.weight() == Approx(0.5));
  // The norm of what is left then decides: it is below the limit already.
  options.max_grad_norm = 0.5;
  Bench both(options);
  both.window({3}, {0, {1}});
  CHECK(both.weight() == Approx(0.5).epsilon(1e-5));
}

TEST_CASE("update: the scale halves when a window overflows, grows after enough good ones, within bounds",
          "[train]") {
  Bench bench(scaled({.init = 8, .growth_interval = 2, .min = 2, .max = 16}));
  const LearningRates rates{0, {0.1}};
  std::vector<double> scales;
  for (const bool poisoned :
       {false, false, false, false, false, false, true, true, true, true, true, false}) {
    scales.push_back(bench.window({1}, rates, poisoned).scale);
  }
  CHECK(scales == std::vector<double>{8, 8, 16, 16, 16, 16, 16, 8, 4, 2, 2, 2});
}

// A gradient of 0 never overflows: growing without a bound, the scale would be infinite after 112 windows.
TEST_CASE("update: the scale stops growing at its bound, however long nothing overflows", "[train]") {
  Bench bench(scaled({.growth_interval = 1}));
  for (int window = 0; window < 150; ++window) bench.window({0}, {0, {0.1}});
  const Made last = bench.window({0}, {0, {0.1}});
  CHECK(last.scale == optim::LossScaleOptions().max);
  CHECK(last.applied == 1);
}

// Micro-batches of 2, 0 and 1 targets; the weight is 0.
TEST_CASE("update: a micro-batch without targets adds nothing to the loss shown or the gradient", "[train]") {
  Bench bench({});
  bench.update->begin(3, 3);
  bench.update->accumulate(batch(3, 2));
  bench.update->accumulate(batch(0, 0));
  bench.update->accumulate(batch(6, 1));
  const at::Tensor values = bench.update->finish({0, {0.5}});
  CHECK(values[0].item<double>() == Approx(3));  // 2 * 9/2 / 3
  CHECK(values[1].item<double>() == 0);
  CHECK(values[2].item<double>() == Approx(6));  // 36/2 / 3
  CHECK(values[3].item<double>() == Approx(4));  // (2 * 3 + 6) / 3
  CHECK(bench.weight() == Approx(2));
}

TEST_CASE("update: a skipped window leaves no trace, in the weights, the count or the schedule", "[train]") {
  UpdateOptions options = scaled({.init = 4});
  Bench with_bad(options), without(options);
  const LearningRates rates{0, {0.5, 0.25, 0.125, 0.0625}};
  CHECK(with_bad.window({8}, rates).applied == 1);
  CHECK(with_bad.window({8}, rates, true).applied == 0);
  CHECK(with_bad.update->applied().item<double>() == 1);
  CHECK(with_bad.window({2}, rates).applied == 1);
  without.window({8}, rates);
  without.window({2}, rates);
  CHECK(with_bad.weight() == without.weight());
  // 0 -> 4 with 0.5 * 8; then 4 - 0.25 * (4 - 2).
  CHECK(with_bad.weight() == Approx(3.5));
}

TEST_CASE("update: averages take in the weights after each update, and nothing of a skipped window",
          "[train]") {
  Bench bench({}, at::kFloat, /*ema_decay=*/0.75);
  const auto average = [&] { return bench.ema->averages()[0].second.item<double>(); };
  const LearningRates rates{0, {0.5, 0.5, 0.5}};
  bench.window({8}, rates);  // 0 -> 4
  CHECK(average() == 1);
  bench.window({8}, rates, /*poisoned=*/true);
  CHECK(average() == 1);
  bench.window({2}, rates);  // 4 -> 3
  CHECK(average() == 1.5);
}

TEST_CASE("update: a bound on values may be smaller than the type of the gradients can tell", "[train]") {
  UpdateOptions options;
  options.precision.weights = at::kHalf;
  options.max_grad_value = 1e-9;
  Bench bench(options, at::kHalf);
  bench.window({3}, {0, {1e9}});
  CHECK(bench.weight() == Approx(1));
}

TEST_CASE("update: after too many windows in a row nothing changes, also in those the host has sent already",
          "[train]") {
  UpdateOptions options;
  options.max_skipped = 2;
  Bench bench(options);
  const LearningRates rates{0, {0.5, 0.5, 0.5, 0.5}};
  CHECK(bench.window({1}, rates, true).applied == 0);
  CHECK(bench.window({1}, rates).applied == 1);  // the row is broken
  const double weight = bench.weight();
  CHECK(bench.window({1}, rates, true).applied == 0);
  CHECK(bench.window({1}, rates, true).applied == 0);
  CHECK(bench.window({1}, rates).applied == 0);
  CHECK(bench.weight() == weight);
}

TEST_CASE("update: stop lets a loss scale find its value, and ends at a loss that is not finite", "[train]") {
  UpdateOptions options = scaled({.init = 1e12, .backoff_factor = 1e-3, .max = 1e12});
  options.precision.weights = at::kHalf;
  options.stop_on_nonfinite = true;
  Bench bench(options, at::kHalf);
  const LearningRates rates{0, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}};
  CHECK(bench.window({1}, rates).applied == 0);  // 1e12 overflows float16
  CHECK(bench.window({1}, rates).applied == 0);  // 1e9 as well
  CHECK(bench.window({1}, rates).applied == 0);  // 1e6 as well
  CHECK(bench.window({1}, rates).applied == 1);
  CHECK(bench.window({1}, rates, true).applied == 0);
  CHECK(bench.window({1}, rates).applied == 0);
}

TEST_CASE("update: sums of 16-bit gradients over micro-batches are kept in float32", "[train]") {
  UpdateOptions options;
  options.precision.weights = at::kBFloat16;
  Bench bench(options, at::kBFloat16);
  REQUIRE(bench.model.named_parameters()[0].second.scalar_type() == at::kBFloat16);
  // Gradients of 256 and then 255 times 1 over 256 targets: in bfloat16 a sum of 256 stays at 256.
  std::vector<double> targets(256, -1.0);
  targets[0] = -256;
  CHECK(bench.window(targets, {0, {1}}).norm == Approx((256 + 255.0) / 256));
}

TEST_CASE(
    "update: with stop a value that is not finite changes nothing, then and later, running statistics "
    "included",
    "[train]") {
  nn::Sequential model;
  const nn::Init init = nn::init_on_cpu(1);
  model.push(std::make_unique<nn::Conv2d>(nn::Conv2dShape{.in = 1, .out = 2, .kernel = 1}, init));
  model.push(std::make_unique<nn::BatchNorm2d>(2));
  const at::Tensor flat = model.to(at::kCPU, true);
  class Mean : public Square {
   public:
    at::Tensor loss_sum(const at::Tensor& output, const at::Tensor&) const override {
      return output.flatten().square().slice(0, 0, 5).sum();
    }
  } objective;
  const bool stops = GENERATE(true, false);
  CAPTURE(stops);
  const auto optimizer = bound(optim::all_optimizers(), "sgd").build({model.named_parameters(), 1});
  UpdateOptions options;
  options.max_grad_norm = 1;
  options.stop_on_nonfinite = stops;
  Update update(model, flat, objective, *optimizer, options);

  const auto run_window = [&](bool poisoned) {
    update.begin(3, 1);
    if (poisoned) update.poison_next();
    update.accumulate({at::randn({3, 1, 2, 2}), {}, {0, 1, 2}, 3});
    return update.finish({0, {0.1}});
  };
  run_window(false);
  const std::uint64_t parameters = hash_tensors(model.named_parameters());
  const at::Tensor buffers = flat.clone();
  CHECK(run_window(true)[0].isnan().item<bool>());
  CHECK(hash_tensors(model.named_parameters()) == parameters);
  CHECK(at::equal(flat, buffers));
  run_window(false);
  CHECK((hash_tensors(model.named_parameters()) == parameters) == stops);
  CHECK(at::equal(flat, buffers) == stops);
}

}  // namespace gputrain::train
