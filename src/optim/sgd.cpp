#include "base/error.h"
#include "optim/components.h"
#include "optim/fused_step.h"

namespace gputrain::optim {
namespace {

struct SgdOptions {
  SharedOptions shared{.lr = 0.1};
  double momentum = 0.9;
  bool nesterov = false;
};

void describe(recipe::Visitor& v, SgdOptions& o) {
  describe_shared(v, o.shared, 1e3, "added to the gradient: g += decay * p");
  v.number("momentum", o.momentum, {.min = 0, .max = 1, .max_open = true}, "per step",
           "share of the last update kept in the next one; 0 is plain gradient descent");
  v.boolean("nesterov", o.nesterov, "look ahead along the momentum; needs momentum");
}

// g += decay * p;  m = momentum * m + g;  p -= lr * m   (nesterov: p -= lr * (g + momentum * m)).
// Source: Sutskever et al. 2013, in PyTorch's form, in which the learning rate scales the whole momentum.
std::unique_ptr<Optimizer> build(const SgdOptions& options, const OptimizerContext& context) {
  if (options.nesterov && options.momentum == 0) {
    throw SettingError("optimizer.nesterov",
                       "is true and optimizer.momentum is 0; expected a momentum above 0 to look ahead "
                       "along, or nesterov: false");
  }
  const kernels::SgdRule rule{options.momentum, options.nesterov};
  const std::vector<std::string> states =
      options.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  return fused_optimizer(context, options.shared, /*spared_by_default=*/false, states,
                         [rule](kernels::OptimizerTable& table, const kernels::StepScalars& scalars,
                                kernels::Stream stream) { table.sgd(rule, scalars, stream); });
}

}  // namespace

OptimizerComponent sgd() {
  return recipe::component("sgd", "stochastic gradient descent with momentum", build);
}

}  // namespace gputrain::optim
