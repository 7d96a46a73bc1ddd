#include "optim/components.h"
#include "optim/fused_step.h"

namespace gputrain::optim {
namespace {

struct LionOptions {
  SharedOptions shared{.lr = 1e-4};
  double beta1 = 0.9;
  double beta2 = 0.99;
};

void describe(recipe::Visitor& v, LionOptions& o) {
  describe_shared(v, o.shared, 10, "decoupled: p -= lr * decay * p");
  v.number("beta1", o.beta1, {.min = 0, .max = 1, .max_open = true}, "per step",
           "share of the momentum in the direction whose sign is taken");
  v.number("beta2", o.beta2, {.min = 0, .max = 1, .max_open = true}, "per step", "decay of the momentum");
}

// Source: Chen et al. 2023, algorithm 2.
std::unique_ptr<Optimizer> build(const LionOptions& options, const OptimizerContext& context) {
  const kernels::LionRule rule{options.beta1, options.beta2};
  return fused_optimizer(context, options.shared, /*spared_by_default=*/true, {"momentum"},
                         [rule](kernels::OptimizerTable& table, const kernels::StepScalars& scalars,
                                kernels::Stream stream) { table.lion(rule, scalars, stream); });
}

}  // namespace

OptimizerComponent lion() {
  return recipe::component("lion", "steps of one size along the sign of the momentum", build);
}

}  // namespace gputrain::optim
