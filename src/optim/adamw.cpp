#include "optim/components.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace gputrain::optim {
namespace {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

void describe(recipe::Visitor& v, AdamWOptions& o) {
  v.number("lr", o.lr, {.min = 0, .max = 10, .min_open = true}, "per step", "peak learning rate");
  v.number("beta1", o.beta1, {.min = 0, .max = 1, .max_open = true}, "per step",
           "decay of the gradient's mean");
  v.number("beta2", o.beta2, {.min = 0, .max = 1, .max_open = true}, "per step",
           "decay of the squared gradient's mean");
  v.number("eps", o.eps, {.min = 0, .max = 1, .min_open = true}, "", "added to the root of the squared mean");
  v.number("weight_decay", o.weight_decay, {0, 10}, "per step", "decoupled: p -= lr * decay * p");
}

// Source: Loshchilov & Hutter 2019, algorithm 2; eps outside the root, as in PyTorch.
class AdamW : public Optimizer {
 public:
  AdamW(const AdamWOptions& options, const nn::NamedTensors& parameters) : options_(options) {
    for (const auto& [name, parameter] : parameters) {
      parameters_.push_back(parameter);
      means_.push_back(at::zeros_like(parameter));
      squares_.push_back(at::zeros_like(parameter));
      steps_.push_back(at::zeros({}, parameter.options().requires_grad(false)));
    }
  }

  void step(double lr, const at::Tensor& found_inf) override {
    std::vector<at::Tensor> parameters, gradients, means, squares, steps;
    const at::Tensor applied = found_inf.neg().add(1);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].grad().defined()) continue;
      parameters.push_back(parameters_[i]);
      gradients.push_back(parameters_[i].grad());
      means.push_back(means_[i]);
      squares.push_back(squares_[i]);
      steps.push_back(steps_[i]);
    }
    if (parameters.empty()) return;
    at::_foreach_add_(steps, applied);
    at::_fused_adamw_(parameters, gradients, means, squares, /*max_exp_avg_sqs=*/{}, steps, lr,
                      options_.beta1, options_.beta2, options_.weight_decay, options_.eps, /*amsgrad=*/false,
                      /*maximize=*/false, /*grad_scale=*/{}, found_inf);
  }

  double peak_lr() const override { return options_.lr; }

 private:
  AdamWOptions options_;
  std::vector<at::Tensor> parameters_, means_, squares_;
  std::vector<at::Tensor> steps_;  // updates each parameter has had, for the bias correction: 0-d, float32
};

std::unique_ptr<Optimizer> build(const AdamWOptions& options, const nn::NamedTensors& parameters) {
  return std::make_unique<AdamW>(options, parameters);
}

}  // namespace

OptimizerComponent adamw() {
  return recipe::component("adamw", "Adam with decoupled weight decay", build);
}

}  // namespace gputrain::optim
