#include "nn/precision.h"

#include "nn/module.h"

namespace gputrain::nn {

at::Tensor forward(Module& model, const at::Tensor& input, const Precision& precision) {
  const Autocast autocast(input.device().type(), precision.autocast);
  // Integers (tokens, labels) are never cast.
  const bool cast = precision.weights && input.is_floating_point();
  const at::Tensor output = model(cast ? input.to(*precision.weights) : input);
  return output.to(at::kFloat);
}

}  // namespace gputrain::nn
