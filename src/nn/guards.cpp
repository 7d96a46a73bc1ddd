#include "nn/guards.h"

#include "nn/module.h"

namespace gputrain::nn {

EvaluationMode::EvaluationMode(Module& model) : model_(model), was_training_(model.training()) {
  model_.train(false);
}

EvaluationMode::~EvaluationMode() {
  model_.train(was_training_);
}

KeptBuffers::KeptBuffers(const Module& model) {
  for (const auto& [name, value] : model.named_buffers()) before_.emplace_back(value, value.clone());
}

KeptBuffers::~KeptBuffers() {
  const c10::AutoGradMode no_grad(false);
  try {
    for (auto& [buffer, values] : before_) buffer.copy_(values);
  } catch (...) {
    // Only a device that failed before cannot copy, and that failure is on its way to the user, or comes with
    // the device's next call. Another exception out of here would end the process without a word of it.
  }
}

void drop_gradients(const Module& model) {
  for (auto& [name, parameter] : model.named_parameters()) parameter.mutable_grad().reset();
}

}  // namespace gputrain::nn
