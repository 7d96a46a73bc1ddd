#pragma once

#include "device/graph.h"
#include "nn/batch.h"
#include "nn/precision.h"
#include "objectives/objective.h"
#include "optim/ema.h"
#include "optim/loss_scale.h"
#include "optim/optimizer.h"
#include "profile/take.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace gputrain::train {

struct UpdateOptions {
  nn::Precision precision;
  std::optional<optim::LossScaleOptions> loss_scale;  // absent: losses are not scaled
  std::optional<double> max_grad_norm;
  std::optional<double> max_grad_value;
  // Windows in a row that are not finite after which nothing changes any more.
  std::int64_t max_skipped = 50;
  // One such window is enough; but for an overflow that a dynamic loss scale can still avoid.
  bool stop_on_nonfinite = false;
};

// Learning rates of the updates that may come next: rates[i] is for the one after `applied + i` updates. The
// host does not know yet how many of the last windows were applied; the device does, and takes its own.
struct LearningRates {
  std::int64_t applied = 0;
  std::vector<double> rates;  // at least one, at most kMostRates

  bool operator==(const LearningRates&) const = default;
};
inline constexpr std::size_t kMostRates = 1024;

// What finish() returns behind the micro-batches' shares of the loss.
enum class Outcome { kGradNorm, kApplied, kLossScale, kStopped };
inline constexpr std::size_t kOutcomes = 4;

// Turns the micro-batches of a window into one update of the model. Nothing here waits for the device.
class Update {
 public:
  // flat_buffers: the model's floating-point buffers as one tensor (Module::to); may be undefined.
  // optimizer: of the parameters that are trained (optim::trained), in the model's order.
  // ema: averages that follow the updates; may be null.
  Update(nn::Module& model, at::Tensor flat_buffers, const objectives::Objective& objective,
         optim::Optimizer& optimizer, const UpdateOptions& options, optim::Ema* ema = nullptr);

  // Starts a window of so many micro-batches; `targets` are those of all of them, at least 1.
  void begin(std::int64_t targets, std::size_t micro_batches);

  // Forward and backward of one micro-batch. Its share of the window's mean loss stays on the device. The
  // batch is given up as soon as it is not needed any more.
  void accumulate(nn::Batch batch);

  // From now on the passes of batches that look like this one (shapes, types, order of memory) are replayed
  // as graphs of the GPU. Changes no result. Call it between windows, after some that were like those to
  // come; `micro_batches`: of a full window. Throws as device::Graph::capture does, and goes on without
  // graphs then.
  void capture(nn::Batch like, std::size_t micro_batches);

  // From now on passes are made one by one again.
  void drop_graphs() { captured_.reset(); }
  bool has_graphs() const { return captured_ != nullptr; }

  // What a replayed pass takes while it runs, which the allocator does not count; 0 without graphs.
  std::int64_t graph_bytes() const;

  // Multiplies the next micro-batch's loss by NaN before its backward pass: for tests, by fault injection.
  void poison_next() { poison_ = true; }

  // In this order: unscaling, finite check, clipping, optimizer, loss scale, averages. Returns, on the
  // device, float32 [micro-batches + kOutcomes]: each micro-batch's share of the window's mean loss, the L2
  // norm of the gradient before clipping, 1 where the update was applied, the loss scale it was made with,
  // and 1 where nothing changes any more. When a loss or the norm is not finite, nothing changes but the loss
  // scale: weights, averages, optimizer state, count of updates, and the buffers are as before the window.
  at::Tensor finish(const LearningRates& rates);

  // Calls it between the forward and the backward pass of each micro-batch that is not replayed.
  using ForwardWatch = std::function<void(const at::Tensor& output, const at::Tensor& loss)>;
  void watch_forward(ForwardWatch watch) { forward_watch_ = std::move(watch); }

  // The tensors of this window's gradients so far and of its own, for the account of memory.
  profile::Held held() const;

  // Updates applied so far: float32, 0-d, on the device.
  const at::Tensor& applied() const { return applied_; }

 private:
  // A pass as a graph, and the loss that it writes.
  struct CapturedPass {
    device::Graph graph;
    at::Tensor loss;
  };
  // Graphs know addresses: of the batch, and of the gradients that the window's first pass makes anew and the
  // following ones add to.
  struct Captured {
    nn::Batch batch;
    CapturedPass first;
    std::optional<CapturedPass> following;
    std::vector<at::Tensor> gradients;  // like parameters_
    std::vector<at::Tensor> sums;       // like sums_
  };

  at::Tensor pass(nn::Batch batch);
  CapturedPass capture_pass(const nn::Batch& batch, const device::Graph* sharing);
  CapturedPass* captured_pass(const nn::Batch& batch);
  at::Tensor replay(CapturedPass& captured, nn::Batch batch);
  void forget_gradients();
  void add_to_sums();
  std::vector<at::Tensor> gradients() const;
  at::Tensor learning_rate(const LearningRates& rates);
  at::Tensor decide(const at::Tensor& losses, const at::Tensor& norm, const at::Tensor& scale);
  at::Tensor clipping_factor(const at::Tensor& norm) const;
  void clip_values(std::vector<at::Tensor>& gradients, const at::Tensor& scale) const;
  static at::Tensor norm_of(const std::vector<at::Tensor>& gradients);

  nn::Module& model_;
  const objectives::Objective& objective_;
  optim::Optimizer& optimizer_;
  optim::Ema* ema_;
  UpdateOptions options_;
  optim::LossScale loss_scale_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor>
      sums_;  // of 16-bit gradients over a window, float32, like parameters_; or undefined
  at::Tensor flat_buffers_;
  at::Tensor buffers_before_;    // the window
  at::Tensor skipped_in_a_row_;  // float32, 0-d
  at::Tensor stopped_;           // float32, 0-d: 1 from when nothing changes any more
  at::Tensor applied_;
  at::Tensor share_;                // of a target in the window's loss: 1 / targets; float32, 0-d
  std::vector<at::Tensor> losses_;  // of this window so far, 0-d
  LearningRates rates_;             // as they are on the device
  at::Tensor rates_on_device_;      // float32 [kMostRates]; the last one repeated
  std::unique_ptr<Captured> captured_;
  bool on_captured_gradients_ = false;  // this window so far
  bool sums_in_float32_ = false;        // in this window
  bool poison_ = false;
  ForwardWatch forward_watch_;  // may be empty
};

}  // namespace gputrain::train
