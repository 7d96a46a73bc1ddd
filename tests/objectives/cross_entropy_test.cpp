#include "objectives/objective.h"
#include "support/catch.h"
#include "support/settings.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

namespace gputrain::objectives {
namespace {

std::unique_ptr<Objective> cross_entropy_with(const std::string& smoothing, std::int64_t classes) {
  return bound(all_objectives(), "cross_entropy", {{"label_smoothing", smoothing}}).build({classes});
}

// With the data's ignore_index, as the objective's too.
std::unique_ptr<Objective> ignoring(std::int64_t ignore_index, std::int64_t classes,
                                    const std::string& smoothing = "0") {
  return bound(all_objectives(), "cross_entropy",
               {{"label_smoothing", smoothing}, {"ignore_index", std::to_string(ignore_index)}})
      .build({classes, ignore_index});
}

struct Reference {
  double loss = 0;
  std::vector<double> gradient;  // like the logits
};

// PyTorch's cross_entropy(reduction="sum", ignore_index=..., label_smoothing=...), from its documentation, in
// float64: per target (1 - e) * -log p[y] + e / C * sum over classes of -log p. Its gradient is p minus the
// smoothed target. logits: [rows, classes].
Reference reference(const std::vector<double>& logits, std::size_t classes,
                    const std::vector<std::int64_t>& targets, std::int64_t ignore_index, double smoothing) {
  Reference made{0, std::vector<double>(logits.size(), 0)};
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] == ignore_index) continue;
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[row * classes + c]);
    for (std::size_t c = 0; c < classes; ++c) {
      const double log_p = logits[row * classes + c] - std::log(sum);
      const bool is_target = static_cast<std::int64_t>(c) == targets[row];
      const double weight = (is_target ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
      made.loss -= weight * log_p;
      made.gradient[row * classes + c] = std::exp(log_p) - weight;
    }
  }
  return made;
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

TEST_CASE("cross entropy: ignored targets add nothing to the loss or its gradient, as in PyTorch's sum",
          "[objectives]") {
  const std::int64_t ignore_index = GENERATE(-100, 0, 255);
  const std::string smoothing = GENERATE("0", "0.1");
  CAPTURE(ignore_index, smoothing);
  // Two sequences of three positions, seven classes.
  const at::Tensor values = at::randn({2, 3, 7}).mul_(2);
  const std::vector<std::int64_t> targets{3, ignore_index, 6, ignore_index, ignore_index, 1};
  std::vector<double> logits;
  for (std::int64_t i = 0; i < 42; ++i) logits.push_back(values.view({42})[i].item<double>());
  const Reference expected = reference(logits, 7, targets, ignore_index, std::stod(smoothing));
  const auto objective = ignoring(ignore_index, 7, smoothing);
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{2, 3}, {6}}) {
    std::vector<std::int64_t> with_classes = shape;
    with_classes.push_back(7);
    const at::Tensor output = values.clone().view(with_classes).set_requires_grad(true);
    const at::Tensor loss = objective->loss_sum(output, at::tensor(targets, at::kLong).view(shape));
    CHECK(loss.dim() == 0);
    CHECK(loss.item<double>() == Approx(expected.loss).epsilon(1e-6));
    loss.backward();
    const at::Tensor gradient = output.grad().view({42});
    for (std::int64_t i = 0; i < 42; ++i) {
      // Float32 sums of probabilities: a few units of 6e-8.
      CHECK(std::abs(gradient[i].item<double>() - expected.gradient[static_cast<std::size_t>(i)]) < 1e-6);
    }
  }
}

// Every row ranks the classes 6, 5, 4, 3, 2, 1, 0: the first would be right if 6 were not ignored.
TEST_CASE("cross entropy: ignored targets are neither right nor wrong, also where a class has their number",
          "[objectives]") {
  const at::Tensor logits =
      at::tensor({0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).expand({2, 2, 7}).contiguous();
  const at::Tensor with_6_ignored =
      ignoring(6, 7)->metric_sums(logits, at::tensor({6, 5, 6, 1}, at::kLong).view({2, 2}));
  CHECK(with_6_ignored[0].item<float>() == 0);
  CHECK(with_6_ignored[1].item<float>() == 1);  // class 5, the second; class 1 is the sixth
  const at::Tensor plain =
      ignoring(-100, 7)->metric_sums(logits, at::tensor({6, -100, 6, 2}, at::kLong).view({2, 2}));
  CHECK(plain[0].item<float>() == 2);
  CHECK(plain[1].item<float>() == 3);
}

TEST_CASE("every objective: a batch without targets has sums of 0, and no NaN in its gradient",
          "[objectives]") {
  for (const ObjectiveComponent& component : all_objectives()) {
    INFO(component.name);
    const auto objective = bound(all_objectives(), component.name).build({7, -100});
    const at::Tensor output = at::randn({2, 3, 7}).set_requires_grad(true);
    const at::Tensor target = at::full({2, 3}, -100, at::kLong);
    const at::Tensor loss = objective->loss_sum(output, target);
    CHECK(loss.item<float>() == 0);
    loss.backward();
    CHECK(output.grad().equal(at::zeros({2, 3, 7})));
    const auto metrics = static_cast<std::int64_t>(objective->metrics().size());
    CHECK(objective->metric_sums(output, target).equal(at::zeros({metrics})));
  }
}

TEST_CASE("cross entropy: logits that float16 can barely hold have a finite loss and gradient",
          "[objectives]") {
  const at::Tensor logits = at::tensor({60000.0F, -60000.0F, 0.0F}).view({1, 3}).set_requires_grad(true);
  const at::Tensor loss = cross_entropy_with("0", 3)->loss_sum(logits, at::tensor({1}, at::kLong));
  CHECK(loss.item<float>() == 120000);
  loss.backward();
  CHECK(logits.grad().equal(at::tensor({1.0F, -1.0F, 0.0F}).view({1, 3})));
}

TEST_CASE("cross entropy: what it ignores and what the data counts must agree", "[objectives]") {
  const auto build = [](const std::string& ignore_index, std::optional<std::int64_t> of_data) {
    return bound(all_objectives(), "cross_entropy", {{"ignore_index", ignore_index}}).build({10, of_data});
  };
  CHECK_NOTHROW(build("-100", std::nullopt));
  CHECK_NOTHROW(build("255", std::nullopt));  // no class has that number: nothing is ignored by either
  CHECK_NOTHROW(build("0", 0));
  CHECK_THROWS_WITH(build("-100", 0),
                    "objective.ignore_index is -100, the data marks targets to be ignored by 0; expected 0");
  CHECK_THROWS_WITH(
      build("9", std::nullopt),
      "objective.ignore_index is 9, which is one of the data's 10 classes, and the data counts its "
      "samples as targets; expected a value that is no class, as -100");
}

TEST_CASE("cross entropy: an ignore_index that nothing in the data has is inactive", "[objectives]") {
  const auto inactive = [](const std::string& ignore_index, std::optional<std::int64_t> of_data) {
    return bound(all_objectives(), "cross_entropy", {{"ignore_index", ignore_index}})
        .build({10, of_data})
        ->inactive();
  };
  CHECK(inactive("-100", std::nullopt).empty());
  CHECK(inactive("255", std::nullopt) ==
        std::vector<std::string>{"ignore_index (this data marks no targets to be ignored)"});
  CHECK(inactive("255", 255).empty());
}

}  // namespace gputrain::objectives
