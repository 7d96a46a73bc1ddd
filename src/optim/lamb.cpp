#include "optim/components.h"
#include "optim/moments.h"
#include "optim/states.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <utility>

namespace gputrain::optim {
namespace {

struct LambOptions {
  SharedOptions shared{.lr = 2e-3, .weight_decay = 0.01};
  MomentOptions moments{.eps = 1e-6};
};

void describe(recipe::Visitor& v, LambOptions& o) {
  describe_shared(v, o.shared, 10, "part of the direction, before its length is set: r += decay * p");
  describe_moments(v, o.moments);
}

// |weights| / |direction| of each parameter, 1 where one of them is 0: 0-d tensors.
std::vector<at::Tensor> trust_ratios(const std::vector<at::Tensor>& weights,
                                     const std::vector<at::Tensor>& directions) {
  const at::Tensor lengths = at::stack(at::_foreach_norm(weights, 2));
  const at::Tensor steps = at::stack(at::_foreach_norm(directions, 2));
  const at::Tensor known = lengths.gt(0).logical_and(steps.gt(0));
  return at::where(known, lengths.div(steps), 1).unbind();
}

// m, v = averages of g, g^2;  r = m_hat / (sqrt(v_hat) + eps) + decay * p;  p -= lr * |p| / |r| * r.
// Source: You et al. 2020, algorithm 2, with the identity as phi.
class Lamb : public Optimizer {
 public:
  Lamb(const LambOptions& options, const OptimizerContext& context)
      : options_(options),
        settings_(settings_of(context, options.shared, /*spared_by_default=*/true)),
        weights_(context, without_decay(settings_), options.shared.rounding, {"mean", "square"}) {}

  void step(const std::vector<at::Tensor>& gradients, const StepInputs& inputs) override {
    std::vector<std::size_t> used;
    std::vector<at::Tensor> given, weights, means, squares;
    std::vector<at::Scalar> decays;
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      if (!gradients.at(i).defined()) continue;
      used.push_back(i);
      given.push_back(gradients[i].to(at::kFloat));
      weights.push_back(weights_.weight(i));
      means.push_back(weights_.state_of(0, i));
      squares.push_back(weights_.state_of(1, i));
      decays.emplace_back(settings_[i].weight_decay);
    }
    if (used.empty()) return;
    const MomentOptions& o = options_.moments;
    const std::vector<at::Tensor> scaled = at::_foreach_mul(given, inputs.gradient_scale);
    const std::vector<at::Tensor> new_means = at::_foreach_lerp(means, scaled, 1 - o.beta1);
    const std::vector<at::Tensor> new_squares = at::_foreach_mul(squares, o.beta2);
    at::_foreach_addcmul_(new_squares, scaled, scaled, 1 - o.beta2);

    const std::vector<at::Tensor> directions =
        at::_foreach_div(new_means, bias_correction(o.beta1, inputs.step));
    const std::vector<at::Tensor> roots =
        at::_foreach_div(new_squares, bias_correction(o.beta2, inputs.step));
    at::_foreach_sqrt_(roots);
    at::_foreach_add_(roots, o.eps);
    at::_foreach_div_(directions, roots);
    at::_foreach_add_(directions, at::_foreach_mul(weights, decays));
    at::_foreach_mul_(directions, trust_ratios(weights, directions));

    std::vector<at::Tensor> by_parameter(settings_.size());
    for (std::size_t k = 0; k < used.size(); ++k) {
      keep(inputs.apply, new_means[k], means[k]);
      keep(inputs.apply, new_squares[k], squares[k]);
      by_parameter[used[k]] = directions[k];
    }
    weights_.descend(by_parameter, inputs);
  }

  double peak_lr() const override { return options_.shared.lr; }
  nn::NamedTensors state() const override { return weights_.state(); }

 private:
  static std::vector<ParameterSetting> without_decay(std::vector<ParameterSetting> settings) {
    for (ParameterSetting& setting : settings) setting.weight_decay = 0;
    return settings;
  }

  LambOptions options_;
  std::vector<ParameterSetting> settings_;
  FusedStep weights_;
};

std::unique_ptr<Optimizer> build(const LambOptions& options, const OptimizerContext& context) {
  return std::make_unique<Lamb>(options, context);
}

}  // namespace

OptimizerComponent lamb() {
  return recipe::component("lamb", "Adam whose steps are as long as the weights, for large batches", build);
}

}  // namespace gputrain::optim
