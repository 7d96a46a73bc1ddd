#include "train/update.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <utility>

namespace gputrain::train {

Update::Update(nn::Module& model, at::Tensor flat_buffers, const objectives::Objective& objective,
               optim::Optimizer& optimizer, std::optional<double> max_grad_norm)
    : model_(model),
      objective_(objective),
      optimizer_(optimizer),
      max_grad_norm_(max_grad_norm),
      flat_buffers_(std::move(flat_buffers)) {
  for (const auto& [name, parameter] : model_.named_parameters()) parameters_.push_back(parameter);
  stopped_ = at::zeros({}, parameters_.front().options().requires_grad(false));
  if (flat_buffers_.defined()) buffers_before_ = at::empty_like(flat_buffers_);
}

void Update::begin(std::int64_t targets) {
  scale_ = 1 / static_cast<double>(targets);
  losses_.clear();
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  if (flat_buffers_.defined()) buffers_before_.copy_(flat_buffers_);
}

void Update::accumulate(const nn::Batch& batch) {
  at::Tensor loss = objective_.loss_sum(model_(batch.input), batch.target).mul(scale_);
  if (std::exchange(poison_, false)) loss = loss.mul(std::numeric_limits<double>::quiet_NaN());
  loss.backward();
  losses_.push_back(loss.detach());
}

at::Tensor Update::finish(double lr) {
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  const at::Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
  losses_.push_back(norm);
  const at::Tensor values = at::stack(losses_);
  const at::Tensor found_inf = check_finite(values);
  clip(norm, gradients);
  optimizer_.step(lr, found_inf);
  return values;
}

at::Tensor Update::check_finite(const at::Tensor& values) {
  // 0 times a value is 0, or NaN when the value is not finite: one sum tells about all of them.
  const at::Tensor bad = values.mul(0).sum().ne(0).to(at::kFloat);
  stopped_ = at::maximum(stopped_, bad);
  if (flat_buffers_.defined()) {
    flat_buffers_.copy_(at::where(stopped_.to(at::kBool), buffers_before_, flat_buffers_));
  }
  return stopped_;
}

// Source: Pascanu et al. 2013; the epsilon is PyTorch's.
void Update::clip(const at::Tensor& norm, std::vector<at::Tensor>& gradients) const {
  if (!max_grad_norm_) return;
  const at::Tensor factor = norm.add(1e-6).reciprocal().mul(*max_grad_norm_).clamp_max(1);
  at::_foreach_mul_(gradients, factor);
}

}  // namespace gputrain::train
