#pragma once

#include "kernels/optimizer_step.h"
#include "optim/fused_step.h"
#include "recipe/visitor.h"

namespace gputrain::optim {

// The keys of Adam and its kin: averages of the gradient and of its square.
struct MomentOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

inline void describe_moments(recipe::Visitor& v, MomentOptions& o) {
  v.number("beta1", o.beta1, {.min = 0, .max = 1, .max_open = true}, "per step",
           "decay of the gradient's mean");
  v.number("beta2", o.beta2, {.min = 0, .max = 1, .max_open = true}, "per step",
           "decay of the squared gradient's mean");
  v.number("eps", o.eps, {.min = 0, .max = 1, .min_open = true}, "", "added to the root of the squared mean");
}

// Adam's update with these; its states are "mean" and "square". `decoupled`: as in kernels::AdamWRule.
inline Rule adam_rule(const MomentOptions& o, bool decoupled) {
  const kernels::AdamWRule rule{o.beta1, o.beta2, o.eps, decoupled};
  return [rule](kernels::OptimizerTable& table, const kernels::StepScalars& scalars, kernels::Stream stream) {
    table.adamw(rule, scalars, stream);
  };
}

}  // namespace gputrain::optim
