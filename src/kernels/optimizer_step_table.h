#pragma once

#include "kernels/optimizer_step.h"

#include <cstdint>
#include <memory>
#include <vector>

// What stands between OptimizerTable and the two places where it works.
namespace gputrain::kernels {

// A block works on one chunk: small enough that a model of 25 million weights fills a large GPU several times
// over, and large enough that reading the table and the scalars does not count.
inline constexpr std::int64_t kChunkElements = 8192;

struct TableTensor {
  OptimizerTensor memory;
  std::int64_t first_element = 0;  // its first element's number in the model
  bool whole_vectors = false;      // all pointers allow four elements at a time
};

struct TableChunk {
  std::int64_t tensor = 0;
  std::int64_t first = 0;  // of its elements; the last chunk of a tensor may be short
};

// The tensors that a step changes, and the chunks they are cut into.
struct TableLayout {
  std::vector<TableTensor> tensors;
  std::vector<TableChunk> chunks;
};
TableLayout lay_out(const std::vector<OptimizerTensor>& tensors);

// The steps of OptimizerTable in one place; arguments have been checked.
class OptimizerSteps {
 public:
  virtual ~OptimizerSteps() = default;
  virtual void set(TableLayout layout, Stream stream) = 0;
  virtual void sgd(const SgdRule& rule, const StepScalars& scalars, Stream stream) = 0;
  virtual void adamw(const AdamWRule& rule, const StepScalars& scalars, Stream stream) = 0;
  virtual void lion(const LionRule& rule, const StepScalars& scalars, Stream stream) = 0;
};

// On the current device. Throws Error(kUsage) in a build without CUDA.
std::unique_ptr<OptimizerSteps> optimizer_steps_cuda();

}  // namespace gputrain::kernels
