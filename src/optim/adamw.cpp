#include "optim/components.h"
#include "optim/moments.h"

namespace gputrain::optim {
namespace {

struct AdamWOptions {
  SharedOptions shared{.lr = 1e-3, .weight_decay = 0.01};
  MomentOptions moments;
};

void describe(recipe::Visitor& v, AdamWOptions& o) {
  describe_shared(v, o.shared, 10, "decoupled: p -= lr * decay * p");
  describe_moments(v, o.moments);
}

// Source: Loshchilov & Hutter 2019, algorithm 2; eps outside the root, as in PyTorch.
std::unique_ptr<Optimizer> build(const AdamWOptions& options, const OptimizerContext& context) {
  return fused_optimizer(context, options.shared, /*spared_by_default=*/true, {"mean", "square"},
                         adam_rule(options.moments, /*decoupled=*/true));
}

}  // namespace

OptimizerComponent adamw() {
  return recipe::component("adamw", "Adam with decoupled weight decay", build);
}

}  // namespace gputrain::optim
