#include "optim/components.h"
#include "optim/moments.h"

namespace gputrain::optim {
namespace {

struct AdamOptions {
  SharedOptions shared;
  MomentOptions moments;
};

void describe(recipe::Visitor& v, AdamOptions& o) {
  describe_shared(v, o.shared, 10, "added to the gradient: g += decay * p; adamw decouples it");
  describe_moments(v, o.moments);
}

// Source: Kingma & Ba 2015, algorithm 1, with the weight decay in the gradient.
std::unique_ptr<Optimizer> build(const AdamOptions& options, const OptimizerContext& context) {
  return fused_optimizer(context, options.shared, /*spared_by_default=*/false, {"mean", "square"},
                         adam_rule(options.moments, /*decoupled=*/false));
}

}  // namespace

OptimizerComponent adam() {
  return recipe::component("adam", "steps of the gradient's mean over the root of its square's", build);
}

}  // namespace gputrain::optim
