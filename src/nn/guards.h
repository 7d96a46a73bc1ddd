#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <utility>
#include <vector>

namespace gputrain::nn {

class Module;

// While it lives, the model is in evaluation mode and nothing records gradients; the mode before, and that of
// gradients, come back with its end, also by an exception.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  const c10::AutoGradMode no_grad_{false};
  Module& model_;
  const bool was_training_;
};

// With its end the model's buffers have the values again that they had at its beginning.
class KeptBuffers {
 public:
  explicit KeptBuffers(const Module& model);
  ~KeptBuffers();
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> before_;  // buffer, its values
};

// Leaves no parameter of the model with a gradient.
void drop_gradients(const Module& model);

}  // namespace gputrain::nn
