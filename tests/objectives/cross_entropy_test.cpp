#include "objectives/objective.h"
#include "support/catch.h"
#include "support/settings.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <cmath>

namespace gputrain::objectives {
namespace {

std::unique_ptr<Objective> cross_entropy_with(const std::string& smoothing, std::int64_t classes) {
  return bound(all_objectives(), "cross_entropy", {{"label_smoothing", smoothing}}).build({classes});
}

}  // namespace

// Logits 0 and ln 3: probabilities 1/4 and 3/4.
TEST_CASE("cross entropy: the sum over targets, by hand", "[objectives]") {
  const at::Tensor logits = at::tensor({0.0F, std::log(3.0F), 0.0F, std::log(3.0F)}).view({2, 2});
  const at::Tensor target = at::tensor({0, 1}, at::kLong);
  const double plain = -std::log(0.25) - std::log(0.75);
  CHECK(cross_entropy_with("0", 2)->loss_sum(logits, target).item<double>() == Approx(plain));
  // Smoothing 0.2 takes 0.2 of the weight and spreads it over both classes, 0.1 each.
  const double smooth =
      -(0.9 * std::log(0.25) + 0.1 * std::log(0.75)) - (0.9 * std::log(0.75) + 0.1 * std::log(0.25));
  CHECK(cross_entropy_with("0.2", 2)->loss_sum(logits, target).item<double>() == Approx(smooth));
}

TEST_CASE("cross entropy: accuracy and top-5 count targets", "[objectives]") {
  const auto objective = cross_entropy_with("0", 7);
  REQUIRE(objective->metrics() == std::vector<std::string>{"accuracy", "top5"});
  // Every row ranks the classes 6, 5, 4, 3, 2, 1, 0.
  const at::Tensor logits =
      at::tensor({0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).expand({3, 7}).contiguous();
  const at::Tensor sums = objective->metric_sums(logits, at::tensor({6, 2, 1}, at::kLong));
  CHECK(sums[0].item<float>() == 1);  // class 6
  CHECK(sums[1].item<float>() == 2);  // classes 6 and 2, the fifth; class 1 is the sixth
}

TEST_CASE("cross entropy: without more than five classes there is no top-5", "[objectives]") {
  const auto objective = cross_entropy_with("0", 5);
  CHECK(objective->metrics() == std::vector<std::string>{"accuracy"});
  const at::Tensor logits = at::tensor({1.0F, 0.0F, 0.0F, 0.0F, 0.0F}).view({1, 5});
  CHECK(objective->metric_sums(logits, at::tensor({0}, at::kLong)).item<float>() == 1);
}

}  // namespace gputrain::objectives
