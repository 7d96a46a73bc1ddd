#include "nn/precision.h"

#include "nn/module.h"

namespace gputrain::nn {

at::Tensor forward(Module& model, at::Tensor input, const Precision& precision) {
  const Autocast autocast(input.device().type(), precision.autocast);
  // Integers (tokens, labels) are never cast.
  if (precision.weights && input.is_floating_point()) input = input.to(*precision.weights);
  return model(input).to(at::kFloat);
}

}  // namespace gputrain::nn
