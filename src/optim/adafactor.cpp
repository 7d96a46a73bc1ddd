#include "optim/components.h"
#include "optim/fused_step.h"
#include "optim/states.h"

#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace gputrain::optim {
namespace {

constexpr double kLeastSquare = 1e-30;  // epsilon 1 of the paper

struct AdafactorOptions {
  SharedOptions shared{.lr = 1e-2};
  double beta2_exponent = 0.8;
  double clip_threshold = 1;
  double least_scale = 1e-3;
};

void describe(recipe::Visitor& v, AdafactorOptions& o) {
  describe_shared(v, o.shared, 10, "decoupled: p -= lr * decay * p");
  v.number("beta2_exponent", o.beta2_exponent, {.min = 0, .max = 1, .min_open = true}, "",
           "the squares' decay at step t is 1 - t^-exponent");
  v.number("clip_threshold", o.clip_threshold, {.min = 0, .max = 1e3, .min_open = true}, "",
           "root mean square of a direction above which it is scaled down");
  v.number("least_scale", o.least_scale, {.min = 0, .max = 1, .min_open = true}, "",
           "steps are relative to the root mean square of the weights, and to at least this");
}

at::Tensor root_mean_square(const at::Tensor& values) {
  return at::linalg_vector_norm(values).div(std::sqrt(static_cast<double>(values.numel())));
}

// Of parameters of two dimensions and more the squares' average is kept as means over rows (the first
// dimension) and columns (the others together): V[i, j] = row[i] * column[j] / mean(row). The learning rate
// is the smaller of lr and 1/sqrt(t), relative to the size of the weights. Source: Shazeer & Stern 2018,
// algorithms 4 to 6; weight decay as in PyTorch.
class Adafactor : public Optimizer {
 public:
  Adafactor(const AdafactorOptions& options, const OptimizerContext& context)
      : options_(options),
        weights_(context, settings_of(context, options.shared, /*spared_by_default=*/true),
                 options.shared.rounding, {}) {
    for (const auto& [name, parameter] : context.parameters) squares_.push_back(new_squares(name, parameter));
  }

  void step(const std::vector<at::Tensor>& gradients, const StepInputs& inputs) override {
    const at::Tensor t = inputs.step.to(at::kDouble);
    const at::Tensor fresh = t.pow(-options_.beta2_exponent).to(at::kFloat);  // 1 - beta2
    // What makes lr the smaller one of lr and 1/sqrt(t); 1 where lr is 0.
    const at::Tensor relative = t.rsqrt().to(at::kFloat).div(inputs.lr).clamp_max(1);
    std::vector<at::Tensor> directions(squares_.size());
    for (std::size_t i = 0; i < squares_.size(); ++i) {
      if (!gradients.at(i).defined()) continue;
      const at::Tensor gradient = gradients[i].to(at::kFloat).mul(inputs.gradient_scale);
      const at::Tensor direction = gradient.mul(inverse_root(squares_[i], gradient, fresh, inputs.apply));
      const at::Tensor excess = root_mean_square(direction).div(options_.clip_threshold).clamp_min(1);
      const at::Tensor size = root_mean_square(weights_.weight(i)).clamp_min(options_.least_scale);
      directions[i] = direction.mul(size.mul(relative).div(excess));
    }
    weights_.descend(directions, inputs);
  }

  double peak_lr() const override { return options_.shared.lr; }

  nn::NamedTensors state() const override {
    nn::NamedTensors all = weights_.state();
    for (const Squares& squares : squares_) {
      if (squares.whole.defined()) all.emplace_back(squares.name + ".square", squares.whole);
      if (!squares.whole.defined()) all.emplace_back(squares.name + ".square_row", squares.row);
      if (!squares.whole.defined()) all.emplace_back(squares.name + ".square_column", squares.column);
    }
    return all;
  }

 private:
  // The average of one parameter's squared gradients.
  struct Squares {
    std::string name;
    at::Tensor row, column;  // [rows, 1, ...], [1, columns...]
    at::Tensor whole;        // in place of these, of parameters of fewer than two dimensions
  };

  static Squares new_squares(const std::string& name, const at::Tensor& parameter) {
    if (parameter.dim() < 2) return {name, {}, {}, new_state(parameter)};
    const auto options = parameter.options().dtype(at::kFloat).requires_grad(false);
    std::vector<std::int64_t> row(static_cast<std::size_t>(parameter.dim()), 1),
        column = parameter.sizes().vec();
    column[0] = 1;
    row[0] = parameter.size(0);
    return {name, at::zeros(row, options), at::zeros(column, options), {}};
  }

  // 1 / sqrt(V) after the average has taken in `gradient`.
  static at::Tensor inverse_root(const Squares& squares, const at::Tensor& gradient, const at::Tensor& fresh,
                                 const at::Tensor& apply) {
    const at::Tensor squared = gradient.square().add(kLeastSquare);
    if (squares.whole.defined()) {
      const at::Tensor whole = at::lerp(squares.whole, squared, fresh);
      keep(apply, whole, squares.whole);
      return whole.rsqrt();
    }
    std::vector<std::int64_t> others(static_cast<std::size_t>(gradient.dim()) - 1);
    std::iota(others.begin(), others.end(), 1);
    const at::Tensor row = at::lerp(squares.row, squared.mean(others, /*keepdim=*/true), fresh);
    const at::Tensor column = at::lerp(squares.column, squared.mean(0, /*keepdim=*/true), fresh);
    keep(apply, row, squares.row);
    keep(apply, column, squares.column);
    // A row of zeros beside large ones must not make 1/0.
    const at::Tensor share = row.div(row.mean()).clamp_min(std::numeric_limits<float>::min());
    return share.rsqrt().mul(column.rsqrt());
  }

  AdafactorOptions options_;
  FusedStep weights_;
  std::vector<Squares> squares_;  // as the parameters
};

std::unique_ptr<Optimizer> build(const AdafactorOptions& options, const OptimizerContext& context) {
  return std::make_unique<Adafactor>(options, context);
}

}  // namespace

OptimizerComponent adafactor() {
  return recipe::component("adafactor", "steps relative to the weights, with hardly any state", build);
}

}  // namespace gputrain::optim
