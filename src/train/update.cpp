#include "train/update.h"

#include "nn/guards.h"
#include "nn/module.h"
#include "optim/freeze.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace gputrain::train {
namespace {

optim::LossScale make_loss_scale(const std::optional<optim::LossScaleOptions>& options, at::Device device) {
  return options ? optim::LossScale(*options, device) : optim::LossScale(device);
}

// A copy in memory that the GPU reads by itself when `pinned`; it is kept until that is done.
at::Tensor on_host(const std::vector<float>& values, bool pinned) {
  at::Tensor copy = at::empty({static_cast<std::int64_t>(values.size())},
                              at::TensorOptions(at::kFloat).pinned_memory(pinned));
  std::copy(values.begin(), values.end(), copy.mutable_data_ptr<float>());
  return copy;
}

}  // namespace

Update::Update(nn::Module& model, at::Tensor flat_buffers, const objectives::Objective& objective,
               optim::Optimizer& optimizer, const UpdateOptions& options, optim::Ema* ema)
    : model_(model),
      objective_(objective),
      optimizer_(optimizer),
      ema_(ema),
      options_(options),
      loss_scale_(make_loss_scale(options.loss_scale, model.named_parameters().front().second.device())),
      flat_buffers_(std::move(flat_buffers)) {
  for (const auto& [name, parameter] : optim::trained(model_.named_parameters())) {
    parameters_.push_back(parameter);
  }
  sums_.resize(parameters_.size());
  const auto scalar = at::TensorOptions(parameters_.front().device()).dtype(at::kFloat);
  skipped_in_a_row_ = at::zeros({}, scalar);
  stopped_ = at::zeros({}, scalar);
  applied_ = at::zeros({}, scalar);
  share_ = at::ones({}, scalar);
  rates_on_device_ = at::zeros({kMostRates}, scalar);
  if (flat_buffers_.defined()) buffers_before_ = at::empty_like(flat_buffers_);
}

void Update::begin(std::int64_t targets, std::size_t micro_batches) {
  share_.fill_(1 / static_cast<double>(targets));
  sums_in_float32_ = options_.precision.weights && micro_batches > 1;
  losses_.clear();
  forget_gradients();
  if (flat_buffers_.defined()) buffers_before_.copy_(flat_buffers_);
}

void Update::forget_gradients() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  for (at::Tensor& sum : sums_) sum.reset();
  on_captured_gradients_ = false;
}

void Update::accumulate(nn::Batch batch) {
  const bool poisoned = std::exchange(poison_, false);
  const at::Tensor share = poisoned ? share_.clone() : at::Tensor();
  if (poisoned) share_.fill_(std::numeric_limits<double>::quiet_NaN());
  CapturedPass* captured = captured_pass(batch);
  losses_.push_back(captured != nullptr ? replay(*captured, std::move(batch)) : pass(std::move(batch)));
  if (poisoned) share_.copy_(share);
}

// Forward and backward. Returns the batch's share of the window's mean loss.
at::Tensor Update::pass(nn::Batch batch) {
  const at::Tensor output = nn::forward(model_, std::move(batch.input), options_.precision);
  const at::Tensor loss = objective_.loss_sum(output, batch.target).mul(share_);
  if (forward_watch_) forward_watch_(output, loss);
  (options_.loss_scale ? loss.mul(loss_scale_.value()) : loss).backward();
  if (sums_in_float32_) add_to_sums();
  return loss.detach();
}

void Update::capture(nn::Batch like, std::size_t micro_batches) {
  captured_.reset();
  const nn::KeptBuffers kept(model_);  // passes that are recorded were not made
  begin(1, micro_batches);
  // Copies: a data set may show the same memory again.
  nn::Batch batch{like.input.clone(), like.target.clone(), std::move(like.sample_ids), like.targets};
  like = {};
  CapturedPass first = capture_pass(batch, nullptr);
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
  std::optional<CapturedPass> following;
  if (micro_batches > 1) following = capture_pass(batch, &first.graph);
  captured_ = std::make_unique<Captured>(
      Captured{std::move(batch), std::move(first), std::move(following), std::move(gradients), sums_});
  forget_gradients();
}

Update::CapturedPass Update::capture_pass(const nn::Batch& batch, const device::Graph* sharing) {
  CapturedPass captured{device::Graph(batch.input.device(), sharing), {}};
  try {
    captured.graph.capture([&] { captured.loss = pass(batch); });
  } catch (...) {
    forget_gradients();
    throw;
  }
  return captured;
}

// The graph of this pass, or nullptr when it has none.
Update::CapturedPass* Update::captured_pass(const nn::Batch& batch) {
  const auto alike = [](const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
  };
  if (!captured_ || !alike(batch.input, captured_->batch.input) ||
      !alike(batch.target, captured_->batch.target)) {
    return nullptr;
  }
  if (losses_.empty()) return &captured_->first;
  return captured_->following && on_captured_gradients_ ? &*captured_->following : nullptr;
}

at::Tensor Update::replay(CapturedPass& captured, nn::Batch batch) {
  const c10::AutoGradMode no_grad(false);
  captured_->batch.input.copy_(batch.input);
  captured_->batch.target.copy_(batch.target);
  batch = {};
  if (losses_.empty()) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = captured_->gradients[i];
    }
    sums_ = captured_->sums;
    on_captured_gradients_ = true;
  }
  captured.graph.replay();
  model_.count_passes(1);
  return captured.loss.clone();
}

std::int64_t Update::graph_bytes() const {
  if (!captured_) return 0;
  const std::int64_t first = captured_->first.graph.temporary_bytes();
  return captured_->following ? std::max(first, captured_->following->graph.temporary_bytes()) : first;
}

profile::Held Update::held() const {
  using profile::Class;
  profile::Held all;
  for (const at::Tensor& parameter : parameters_) all.emplace_back(Class::kGradients, parameter.grad());
  for (const at::Tensor& sum : sums_) all.emplace_back(Class::kGradients, sum);
  for (const at::Tensor& buffers : {flat_buffers_, buffers_before_}) {
    all.emplace_back(Class::kBuffers, buffers);
  }
  for (const at::Tensor& own : {skipped_in_a_row_, stopped_, applied_, share_, rates_on_device_}) {
    all.emplace_back(Class::kUpdate, own);
  }
  for (const at::Tensor& loss : losses_) all.emplace_back(Class::kUpdate, loss);
  for (const at::Tensor& own : loss_scale_.held()) all.emplace_back(Class::kUpdate, own);
  return all;
}

// 16-bit sums over micro-batches would lose what one of them adds.
void Update::add_to_sums() {
  const c10::AutoGradMode no_grad(false);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (!gradient.defined() || gradient.scalar_type() == at::kFloat) continue;
    if (sums_[i].defined()) {
      sums_[i].add_(gradient);
    } else {
      sums_[i] = gradient.to(at::kFloat);
    }
    gradient.reset();
  }
}

// One per parameter, undefined where it has none.
std::vector<at::Tensor> Update::gradients() const {
  std::vector<at::Tensor> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    all.push_back(sums_[i].defined() ? sums_[i] : parameters_[i].grad());
  }
  return all;
}

at::Tensor Update::finish(const LearningRates& rates) {
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> all = gradients();
  const at::Tensor scale = loss_scale_.value().clone();  // deciding changes it
  const at::Tensor inverse_scale = scale.reciprocal();
  const at::Tensor norm = norm_of(all).mul(inverse_scale);
  const at::Tensor losses = at::stack(losses_);
  const at::Tensor apply = decide(losses, norm, scale);
  const at::Tensor lr = learning_rate(rates);
  clip_values(all, scale);
  const at::Tensor norm_to_clip = options_.max_grad_value ? norm_of(all).mul(inverse_scale) : norm;
  optimizer_.step(all, {lr, inverse_scale.mul(clipping_factor(norm_to_clip)), apply, applied_.add(1)});
  applied_.add_(apply);
  if (ema_ != nullptr) ema_->update(apply, applied_);
  return at::cat({losses, at::stack({norm, apply, scale, stopped_})});
}

// Of all gradients as one vector, in float32. Type by type: _foreach_norm launches a few kernels for tensors
// of one type, and one for each tensor when types are mixed.
at::Tensor Update::norm_of(const std::vector<at::Tensor>& gradients) {
  std::map<at::ScalarType, std::vector<at::Tensor>> by_type;
  for (const at::Tensor& gradient : gradients) {
    if (gradient.defined()) by_type[gradient.scalar_type()].push_back(gradient);
  }
  std::vector<at::Tensor> norms;
  for (const auto& [type, same] : by_type) {
    for (at::Tensor& norm : at::_foreach_norm(same, 2, at::kFloat)) norms.push_back(std::move(norm));
  }
  return at::linalg_vector_norm(at::stack(norms));
}

// 1 where the window may change the model. Updates the loss scale and undoes what the window's forward passes
// did to the buffers.
at::Tensor Update::decide(const at::Tensor& losses, const at::Tensor& norm, const at::Tensor& scale) {
  // 0 times a value is 0, or NaN when the value is not finite: one sum tells about all of them.
  const at::Tensor bad_loss = losses.mul(0).sum().ne(0);
  const at::Tensor bad = bad_loss.logical_or(norm.mul(0).ne(0));
  skipped_in_a_row_ = skipped_in_a_row_.add(1).mul(bad);
  at::Tensor fatal = skipped_in_a_row_.ge(options_.max_skipped);
  if (options_.stop_on_nonfinite) {
    const bool can_avoid = options_.loss_scale && !options_.loss_scale->fixed;
    const at::Tensor beyond_scale =
        can_avoid ? bad_loss.logical_or(bad.logical_and(scale.le(options_.loss_scale->min))) : bad;
    fatal = fatal.logical_or(beyond_scale);
  }
  stopped_ = at::maximum(stopped_, fatal.to(at::kFloat));
  loss_scale_.update(bad.to(at::kFloat));
  const at::Tensor refused = bad.logical_or(stopped_.ne(0));
  if (flat_buffers_.defined()) flat_buffers_.copy_(at::where(refused, buffers_before_, flat_buffers_));
  return refused.logical_not().to(at::kFloat);
}

at::Tensor Update::learning_rate(const LearningRates& rates) {
  if (!(rates == rates_)) {
    std::vector<float> values(kMostRates, static_cast<float>(rates.rates.back()));
    std::copy(rates.rates.begin(), rates.rates.end(), values.begin());
    rates_on_device_.copy_(on_host(values, rates_on_device_.is_cuda()), /*non_blocking=*/true);
    rates_ = rates;
  }
  const at::Tensor which = applied_.sub(static_cast<double>(rates.applied)).clamp(0, kMostRates - 1);
  return rates_on_device_.index_select(0, which.to(at::kLong).reshape({1})).reshape({});
}

// Source: Pascanu et al. 2013; the epsilon is PyTorch's.
at::Tensor Update::clipping_factor(const at::Tensor& norm) const {
  if (!options_.max_grad_norm) return at::full({}, 1, norm.options());
  return norm.add(1e-6).reciprocal().mul(*options_.max_grad_norm).clamp_max(1);
}

// In float32: the bound may be nothing in the gradient's own type.
void Update::clip_values(std::vector<at::Tensor>& gradients, const at::Tensor& scale) const {
  if (!options_.max_grad_value) return;
  const at::Tensor most = scale.mul(*options_.max_grad_value);  // the gradients are still scaled
  const at::Tensor least = most.neg();
  for (at::Tensor& gradient : gradients) {
    if (gradient.defined()) gradient = gradient.to(at::kFloat).clamp(least, most);
  }
}

}  // namespace gputrain::train
