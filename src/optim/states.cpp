#include "optim/states.h"

#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

namespace gputrain::optim {

void keep(const at::Tensor& apply, const at::Tensor& updated, const at::Tensor& state) {
  at::Tensor out = state;
  at::where_out(out, apply.ne(0), updated, state);
}

at::Tensor bias_correction(double decay, const at::Tensor& step) {
  // In float64: of 1 - 0.999 float32 has only four digits.
  return at::pow(decay, step.to(at::kDouble)).neg().add(1).to(at::kFloat);
}

}  // namespace gputrain::optim
