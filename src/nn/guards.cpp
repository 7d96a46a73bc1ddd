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
  for (auto& [buffer, values] : before_) buffer.copy_(values);
}

}  // namespace gputrain::nn
