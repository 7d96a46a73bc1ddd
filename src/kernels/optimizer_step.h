#pragma once

#include "kernels/stream.h"

#include <cstdint>
#include <memory>
#include <vector>

// Whole optimizer steps in one pass over memory: gradients are scaled, states and weights updated, and the
// 16-bit copy of the weights written, for all tensors of a model in one launch.
//
// Arithmetic is float32 and rounds after each operation, on every device alike: CPU and GPU give the same
// bits, random rounding included. Two things are exempt: the payload of what is not a number, and a host
// compiler that fuses multiplication and addition (targets with FMA, without -ffp-contract=off).
namespace gputrain::kernels {

enum class Element { kFloat32, kFloat16, kBfloat16 };

// The memory of one parameter. All pointers are in the memory of one device; count elements each, of which no
// two overlap. Tensors whose pointers are aligned to four elements are faster than others.
struct OptimizerTensor {
  float* weight = nullptr;  // updated; null: the weights are `low`, and are rounded stochastically
  void* low = nullptr;  // 16-bit weights, of type low_type: written from `weight`, or updated; may be null
  Element low_type = Element::kFloat16;
  const void* gradient = nullptr;  // of gradient_type; null: the tensor is left alone
  Element gradient_type = Element::kFloat32;
  float* state1 = nullptr;  // momentum (sgd, lion), mean (adamw); may be null where the optimizer keeps none
  float* state2 = nullptr;  // mean of squares (adamw); may be null for others
  std::int64_t count = 0;
  float lr_scale = 1;      // factor on the learning rate
  float weight_decay = 0;  // as the optimizer defines it
};

// What differs from step to step, in the memory of the same device, so that the host need not know it. None
// is null.
struct StepScalars {
  const float* lr = nullptr;
  const float* gradient_scale = nullptr;  // gradients are multiplied by it
  const float* apply = nullptr;  // 0: nothing changes, whatever the gradients hold; else the step is made
  const float* step = nullptr;   // number of this step, 1 to 2^24: for bias correction and random rounding
  std::uint64_t seed = 0;        // of stochastic rounding
};

// Factors are double, as in a recipe: 1 - beta2 of a float32 0.999 would be off by 5e-5.
struct SgdRule {
  double momentum = 0;  // 0: state1 is not used
  bool nesterov = false;
};

struct AdamWRule {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool decoupled = true;  // false: Adam, in which the decay is added to the gradient
};

struct LionRule {
  double beta1 = 0.9;
  double beta2 = 0.99;
};

class OptimizerSteps;

// The tensors of a model in a form that the device reads. Made once; set() again when pointers change.
// Calls for CUDA queue their work on `stream` of the current device and return; all calls for one table use
// one stream, or streams that the caller orders.
class OptimizerTable {
 public:
  // `on_cuda`: the tensors are in the memory of the current CUDA device. Throws Error(kUsage) for it in a
  // build without CUDA.
  explicit OptimizerTable(bool on_cuda);
  ~OptimizerTable();
  OptimizerTable(OptimizerTable&&) noexcept;
  OptimizerTable& operator=(OptimizerTable&&) noexcept;

  // Does nothing when `tensors` equals what was set before; otherwise not to be called while the stream is
  // captured, and graphs that hold a step of this table must be captured again. Waits for the stream only
  // when the table grows, or when two earlier changes still wait to be copied. Throws std::invalid_argument
  // for a tensor that no step could work on, CudaError when a call fails.
  void set(const std::vector<OptimizerTensor>& tensors, Stream stream);

  // g = gradient * gradient_scale;
  // sgd:   g += decay * p;  m = momentum * m + g;  p -= lr * (nesterov ? g + momentum * m : m).
  //        Source: Sutskever et al. 2013, in PyTorch's form.
  // adamw: p -= lr * decay * p;  m, v = averages of g, g^2;  p -= lr * m_hat / (sqrt(v_hat) + eps).
  //        Source: Loshchilov & Hutter 2019, algorithm 2.
  // lion:  p -= lr * (sign(beta1 * m + (1 - beta1) * g) + decay * p);  m = beta2 * m + (1 - beta2) * g.
  //        Source: Chen et al. 2023, algorithm 2.
  // lr is the scalar times the tensor's lr_scale. Stochastic rounding draws one word of random_bits() for
  // each element, numbered over all tensors in their order: the result depends neither on the launch nor on
  // how the weights are cut into tensors. Throws std::invalid_argument when a state that the rule needs, or a
  // scalar, is null; CudaError when the launch fails.
  void sgd(const SgdRule& rule, const StepScalars& scalars, Stream stream);
  void adamw(const AdamWRule& rule, const StepScalars& scalars, Stream stream);
  void lion(const LionRule& rule, const StepScalars& scalars, Stream stream);

 private:
  void check(int states, const StepScalars& scalars) const;

  std::vector<OptimizerTensor> tensors_;  // as they were set
  std::unique_ptr<OptimizerSteps> steps_;
};

}  // namespace gputrain::kernels
