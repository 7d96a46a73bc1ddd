#pragma once

#include "device/memory_reading.h"
#include "profile/ledger.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::train {

struct Metric {
  std::string name;  // "accuracy", "top5"
  double value = 0;  // a fraction, 0 to 1
};

// What is known before the first step.
struct RunInfo {
  std::string name;
  std::string unit;                         // of throughput: img, tok, frame
  std::optional<std::int64_t> total_steps;  // absent: only max_time ends the run
  std::int64_t micro_batch_size = 0;
  std::int64_t gradient_accumulation_steps = 1;
  std::int64_t parameters = 0;         // trained and frozen
  std::int64_t frozen_parameters = 0;  // of these
  std::int64_t train_samples = 0;
  std::int64_t validation_samples = 0;
  std::optional<std::int64_t>
      memory_limit_bytes;  // of `device`: memory.limit, else what the card (CPU: the machine) has
};

// Why a window was skipped: its loss or gradient was not finite, or it had no target, and nothing was
// computed.
enum class SkipReason { kNotFinite, kNoTargets };

// One window: an update, or a window that was skipped.
struct StepRecord {
  std::int64_t step = 0;     // applied updates so far, this one included
  std::int64_t window = 0;   // windows so far, skipped ones included
  double epoch = 0;          // epochs of data consumed
  std::int64_t samples = 0;  // in this window
  std::int64_t samples_total = 0;
  std::int64_t targets = 0;  // in this window
  std::int64_t micro_batches = 0;
  double loss = 0;           // sum over targets / targets of the window; nothing where it has none
  double grad_norm = 0;      // L2, before clipping; likewise
  double learning_rate = 0;  // used by this update
  bool skipped = false;
  std::optional<double> loss_scale;  // that this window was computed with
  double seconds = 0;                // end of the previous window to end of this one; evaluation left out
  double data_wait_seconds = 0;
  bool warmup = false;  // left out of throughput
  std::optional<double> eta_seconds;
  device::MemoryReading memory;
};

inline std::optional<SkipReason> skip_reason(const StepRecord& record) {
  if (!record.skipped) return std::nullopt;
  return record.targets == 0 ? SkipReason::kNoTargets : SkipReason::kNotFinite;
}

// Whether it has a loss and a norm.
inline bool was_computed(const StepRecord& record) {
  return skip_reason(record) != SkipReason::kNoTargets;
}

// What a number is called when it is that of the averaged weights.
inline std::string of_averages(const std::string& number) {
  return "ema_" + number;
}

struct EvalRecord {
  std::int64_t step = 0;
  double epoch = 0;
  std::int64_t samples = 0;
  double loss = 0;
  std::optional<double> ema_loss;  // of the averaged weights, where there are any
  std::vector<Metric> metrics;     // those of the averaged weights are called so, and come last
  std::string best_metric;         // the metric that `best` follows: "accuracy"
  double best = 0;                 // best value so far, this one included
  std::int64_t best_step = 0;
  double seconds = 0;
};

enum class StopReason { kEpochs, kMaxSteps, kMaxTime, kInterrupted, kTerminated, kNotFinite, kEarlyStopped };

struct RunSummary {
  StopReason reason = StopReason::kEpochs;
  std::int64_t steps = 0;
  std::int64_t skipped = 0;
  std::int64_t skipped_without_targets = 0;  // of these
  double epochs = 0;
  std::int64_t samples = 0;
  std::optional<double> final_loss;
  std::optional<EvalRecord> last_eval;
  std::optional<double>
      samples_per_second;         // training time only, warm-up left out; absent: nothing to measure
  device::MemoryReading memory;   // peaks over the whole run
  double startup_seconds = 0;     // process start to the first forward pass
  double first_step_seconds = 0;  // process start to the end of the first step
  double training_seconds = 0;    // data wait and warm-up included
  double warmup_seconds = 0;
  double data_wait_seconds = 0;
  double validation_seconds = 0;
  double saving_seconds = 0;
  std::string problem;               // kNotFinite: which step and value
  std::vector<std::string> written;  // files and folders, filled by the run
};

// Receives what happens in a run. Records arrive in order, one or two windows late.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void start(const RunInfo& info) = 0;
  virtual void step(const StepRecord& record) = 0;
  virtual void eval(const EvalRecord& record) = 0;
  virtual void notice(const std::string& text) = 0;
  virtual void finish(const RunSummary& summary) = 0;
  // Once, when it was asked for and measured.
  virtual void ledger(const profile::RunLedger& /*ledger*/) {}
};

}  // namespace gputrain::train
