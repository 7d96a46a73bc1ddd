#include "train/update.h"

#include "nn/layers.h"
#include "support/catch.h"
#include "support/settings.h"
#include "train/trace.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

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

}  // namespace

// One target of 8 and three of 0, in two micro-batches: mean loss 1/2 * 64 / 4 = 8, gradient -8 / 4 = -2.
// Means of means would give -4, a sum -8.
TEST_CASE("update: a window's gradient is the sum over its targets divided by their number", "[train]") {
  Constant model;
  const Square objective;
  const auto optimizer =
      bound(optim::all_optimizers(), "sgd", {{"momentum", "0"}}).build(model.named_parameters());
  Update update(model, {}, objective, *optimizer, {});
  update.begin(4);
  update.accumulate(batch(8, 1));
  update.accumulate(batch(0, 3));
  const at::Tensor values = update.finish(0.5);
  REQUIRE(values.numel() == 3);
  CHECK(values[0].item<double>() + values[1].item<double>() == Approx(8));
  CHECK(values[2].item<double>() == Approx(2));
  CHECK(model.named_parameters()[0].second.item<double>() == Approx(1));  // 0 - 0.5 * -2
}

TEST_CASE("update: a value that is not finite changes nothing, then and later, running statistics included",
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
  const auto optimizer = bound(optim::all_optimizers(), "sgd").build(model.named_parameters());
  Update update(model, flat, objective, *optimizer, 1.0);

  const auto run_window = [&](bool poisoned) {
    update.begin(3);
    if (poisoned) update.poison_next();
    update.accumulate({at::randn({3, 1, 2, 2}), {}, {0, 1, 2}, 3});
    return update.finish(0.1);
  };
  run_window(false);
  const std::uint64_t parameters = hash_tensors(model.named_parameters());
  const at::Tensor buffers = flat.clone();
  CHECK(run_window(true)[0].isnan().item<bool>());
  run_window(false);
  CHECK(hash_tensors(model.named_parameters()) == parameters);
  CHECK(at::equal(flat, buffers));
}

}  // namespace gputrain::train
