#include "train/nonfinite_search.h"

#include "nn/module.h"

#include <ATen/ops/isfinite.h>

#include <algorithm>

namespace gputrain::train {
namespace {

bool is_finite(const at::Tensor& values) {
  return !values.is_floating_point() || at::isfinite(values).all().item<bool>();
}

}  // namespace

NonFiniteSearch::NonFiniteSearch(nn::Module& model, const objectives::Objective& objective,
                                 const nn::Precision& precision)
    : model_(model), objective_(objective), precision_(precision), buffers_(model) {}

NonFiniteSearch::~NonFiniteSearch() {
  nn::drop_gradients(model_);
}

std::string NonFiniteSearch::look_at(const nn::Batch& batch) {
  if (!is_finite(batch.input)) return "the input";
  std::string found;
  const nn::CallWatch watch([&](const nn::Module& module, const at::Tensor& output) {
    if (found.empty() && !is_finite(output)) found = model_.name_of(module);
  });
  const at::Tensor output = nn::forward(model_, batch.input, precision_);
  if (!found.empty()) return found;
  const at::Tensor loss = objective_.loss_sum(output, batch.target);
  if (!is_finite(loss)) return "the loss";
  nn::drop_gradients(model_);  // those of the window itself may hold what is searched for
  loss.div(static_cast<double>(std::max<std::int64_t>(batch.targets, 1))).backward();
  return look_at_gradients();
}

// The backward pass begins with the last layer.
std::string NonFiniteSearch::look_at_gradients() const {
  const nn::NamedTensors parameters = model_.named_parameters();
  for (auto at = parameters.rbegin(); at != parameters.rend(); ++at) {
    if (at->second.grad().defined() && !is_finite(at->second.grad())) return "the gradient of " + at->first;
  }
  return "";
}

}  // namespace gputrain::train
