#pragma once

#include "nn/batch.h"
#include "nn/guards.h"
#include "nn/precision.h"
#include "objectives/objective.h"

#include <string>

namespace gputrain::train {

// Finds where a value that is not finite first appears, by computing a batch again and looking at the output
// of every layer. Slow, since it waits for the device at each of them. The model is as before when it ends:
// buffers, and no gradients.
class NonFiniteSearch {
 public:
  NonFiniteSearch(nn::Module& model, const objectives::Objective& objective, const nn::Precision& precision);
  ~NonFiniteSearch();
  NonFiniteSearch(const NonFiniteSearch&) = delete;
  NonFiniteSearch& operator=(const NonFiniteSearch&) = delete;

  // "the input", "layer1.0.conv1", "the loss", "the gradient of fc.weight"; "" where all is finite.
  std::string look_at(const nn::Batch& batch);

 private:
  std::string look_at_gradients() const;

  nn::Module& model_;
  const objectives::Objective& objective_;
  nn::Precision precision_;
  nn::KeptBuffers buffers_;
};

}  // namespace gputrain::train
