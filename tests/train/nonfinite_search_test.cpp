#include "train/nonfinite_search.h"

#include "nn/layers.h"
#include "support/catch.h"
#include "train/trace.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace gputrain::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Sum of roots: infinite at 0 in its derivative, not a number below.
class Roots : public objectives::Objective {
 public:
  at::Tensor loss_sum(const at::Tensor& output, const at::Tensor&) const override {
    return output.sqrt().sum();
  }
  at::Tensor metric_sums(const at::Tensor&, const at::Tensor&) const override { return at::zeros({0}); }
  const std::vector<std::string>& metrics() const override {
    static const std::vector<std::string> none;
    return none;
  }
};

struct Bench {
  Bench() {
    const nn::Init init = nn::init_on_cpu(1);
    model.push(std::make_unique<nn::Conv2d>(nn::Conv2dShape{.in = 1, .out = 2, .kernel = 1}, init));
    model.push(std::make_unique<nn::BatchNorm2d>(2));
    fill("0.weight", 1);
    fill("1.weight", 0);  // so that the output is the bias alone
    fill("1.bias", 4);
  }

  void fill(const std::string& name, double value) {
    for (const auto& [named, parameter] : model.named_parameters()) {
      if (named == name) parameter.detach().fill_(value);
    }
  }

  std::string look_at(const at::Tensor& input = at::ones({2, 1, 3, 3})) {
    NonFiniteSearch search(model, objective, {});
    return search.look_at({input, {}, {0, 1}, 2});
  }

  nn::Sequential model;
  Roots objective;
};

}  // namespace

TEST_CASE("search for values that are not finite: it names the first place", "[train]") {
  Bench bench;
  CHECK(bench.look_at().empty());
  for (auto& [name, parameter] : bench.model.named_parameters()) {
    parameter.mutable_grad() =
        at::ones(parameter.sizes()).mul(kInfinity);  // the window's own are not looked at
  }
  CHECK(bench.look_at().empty());
  CHECK(bench.look_at(at::ones({2, 1, 3, 3}).mul(kInfinity)) == "the input");
  bench.fill("1.bias", 0);  // the derivative of a root there
  CHECK(bench.look_at() == "the gradient of 1.bias");
  bench.fill("1.bias", -4);
  CHECK(bench.look_at() == "the loss");
  bench.fill("1.bias", kInfinity);
  CHECK(bench.look_at() == "1");
  bench.fill("0.weight", kInfinity);
  CHECK(bench.look_at() == "0");
}

TEST_CASE("search for values that are not finite: it leaves the model as it was", "[train]") {
  Bench bench;
  const std::uint64_t before = hash_tensors(bench.model.named_buffers());
  bench.look_at(at::ones({2, 1, 3, 3}).mul(7));
  CHECK(hash_tensors(bench.model.named_buffers()) == before);
  for (const auto& [name, parameter] : bench.model.named_parameters()) CHECK(!parameter.grad().defined());
}

}  // namespace gputrain::train
