#include "base/error.h"
#include "optim/components.h"

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>

namespace gputrain::optim {
namespace {

struct SgdOptions {
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
};

void describe(recipe::Visitor& v, SgdOptions& o) {
  v.number("lr", o.lr, {.min = 0, .max = 1e3, .min_open = true}, "per step", "peak learning rate");
  v.number("momentum", o.momentum, {.min = 0, .max = 1, .max_open = true}, "per step",
           "share of the last update kept in the next one; 0 is plain gradient descent");
  v.number("weight_decay", o.weight_decay, {0, 10}, "per step", "added to the gradient: g += decay * p");
  v.boolean("nesterov", o.nesterov, "look ahead along the momentum; needs momentum");
}

// g += decay * p;  m = momentum * m + g;  p -= lr * m   (nesterov: p -= lr * (g + momentum * m)).
// Source: Sutskever et al. 2013, in PyTorch's form, in which the learning rate scales the whole momentum.
class Sgd : public Optimizer {
 public:
  Sgd(const SgdOptions& options, const nn::NamedTensors& parameters) : options_(options) {
    for (const auto& [name, parameter] : parameters) {
      parameters_.push_back(parameter);
      if (options_.momentum > 0) momenta_.push_back(at::zeros_like(parameter));
    }
  }

  void step(double lr, const at::Tensor& found_inf) override {
    std::vector<at::Tensor> parameters, gradients, momenta;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].grad().defined()) continue;
      parameters.push_back(parameters_[i]);
      gradients.push_back(parameters_[i].grad());
      if (!momenta_.empty()) momenta.push_back(momenta_[i]);
    }
    if (parameters.empty()) return;
    // The momentum starts at zero, so no step needs to be treated as the first one.
    at::_fused_sgd_(parameters, gradients, momenta, options_.weight_decay, options_.momentum, lr,
                    /*dampening=*/0, options_.nesterov, /*maximize=*/false, /*is_first_step=*/false,
                    /*grad_scale=*/{}, found_inf);
  }

  double peak_lr() const override { return options_.lr; }

 private:
  SgdOptions options_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> momenta_;  // like parameters_, or empty
};

std::unique_ptr<Optimizer> build(const SgdOptions& options, const nn::NamedTensors& parameters) {
  if (options.nesterov && options.momentum == 0) {
    throw SettingError("optimizer.nesterov",
                       "is true and optimizer.momentum is 0; expected a momentum above 0 to look ahead "
                       "along, or nesterov: false");
  }
  return std::make_unique<Sgd>(options, parameters);
}

}  // namespace

OptimizerComponent sgd() {
  return recipe::component("sgd", "stochastic gradient descent with momentum", build);
}

}  // namespace gputrain::optim
