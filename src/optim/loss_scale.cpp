#include "optim/loss_scale.h"

#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

namespace gputrain::optim {

LossScale::LossScale(at::Device device)
    : scale_(at::full({}, 1, at::TensorOptions(device).dtype(at::kFloat))),
      growth_tracker_(at::zeros({}, at::TensorOptions(device).dtype(at::kInt))) {}

LossScale::LossScale(const LossScaleOptions& options, at::Device device) : LossScale(device) {
  scale_.fill_(options.fixed.value_or(options.init));
  if (!options.fixed) dynamic_ = options;
}

void LossScale::update(const at::Tensor& found_inf) {
  if (!dynamic_) return;
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf, dynamic_->growth_factor,
                         dynamic_->backoff_factor, dynamic_->growth_interval);
  scale_.clamp_(dynamic_->min, dynamic_->max);
}

}  // namespace gputrain::optim
