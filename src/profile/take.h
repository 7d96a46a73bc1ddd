#pragma once

#include "data/data_set.h"
#include "device/memory.h"
#include "nn/batch.h"
#include "optim/ema.h"
#include "optim/optimizer.h"
#include "profile/book.h"
#include "profile/ledger.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace gputrain::nn {
class Module;
}  // namespace gputrain::nn

namespace gputrain::profile {

// Whose memory is accounted for.
struct Owners {
  const nn::Module& model;
  const optim::Optimizer& optimizer;
  const optim::Ema* ema;  // may be null
  const data::DataSet& data;
};

// Tensors that only their owner knows, with what they are for.
using Held = std::vector<std::pair<Class, at::Tensor>>;

// Enters all that lives from window to window.
void enter(Book& book, const Owners& owners, const Held& held);

// Measures a run's ledger, in the order of its functions. None of them changes a result.
class LedgerTaker {
 public:
  // held: what the update holds at the time of the call, gradients included.
  LedgerTaker(at::Device device, const Owners& owners, device::MemoryMeter& meter,
              std::function<Held()> held);

  // Before the first window.
  void start();

  // A window of which all passes go through around(), one by one and not replayed; the meter's peaks have
  // just been reset. warm: others like it were made before, so that libraries hold what they want to hold.
  void begin(std::int64_t window, std::int64_t micro_batches, bool warm);

  // Makes a forward and a backward pass of `batch` by calling `pass`, which calls end_forward between the
  // two.
  void around(const nn::Batch& batch, bool is_last, const std::function<void()>& pass);
  void end_forward(const at::Tensor& output, const at::Tensor& loss);

  // The same for a pass of no ledger, so that live() can tell of it.
  void watch(const nn::Batch& batch, const std::function<void()>& pass);

  // After the window's update.
  RunLedger end();

  // What lived in the last pass that was looked into, when a layer last returned or its forward pass ended:
  // an exception may have broken it off. Before the first such pass, what lives now.
  Ledger live() const;

 private:
  void look_into(const nn::Batch& batch, const std::function<void()>& pass);
  void look_at(const nn::Module& layer, const at::Tensor& output);
  void look_around();
  Ledger measure() const;
  void measure_workspaces();

  at::Device device_;
  Owners owners_;
  device::MemoryMeter& meter_;
  std::function<Held()> held_;
  RunLedger ledger_;
  Book book_;
  bool warm_ = false;
  bool is_measured_ = false;        // the pass that is looked into
  bool in_forward_ = false;         // of that pass
  std::int64_t unknown_ = 0;        // allocated, and held by nobody in the book, when last looked at
  std::vector<LayerBytes> growth_;  // of what is unknown, around each call
  std::optional<Ledger> live_;
};

// The part that does not depend on a pass, by arithmetic, of parts that may be on any device: what a run
// holds beside activations and temporaries. flat_buffers: as for train::Update. sample: a batch
// of one. float32_sums: 16-bit gradients are added up in float32 over a window.
struct Outlook {
  const Owners& owners;
  const at::Tensor& flat_buffers;
  const nn::Batch& sample;
  std::int64_t micro_batch_size = 1;
  bool float32_sums = false;
};
Ledger expected(const Outlook& outlook);

}  // namespace gputrain::profile
