#pragma once

#include "base/stop_flag.h"
#include "data/data_set.h"
#include "device/memory_limit.h"
#include "objectives/objective.h"
#include "optim/ema.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "recipe/recipe.h"
#include "train/early_stopping.h"
#include "train/records.h"
#include "train/trace.h"
#include "train/update.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::train {

// Whether forward and backward passes are replayed as CUDA graphs. kAuto: on a GPU that would wait for the
// host otherwise.
enum class Graphs { kAuto, kOn, kOff };

struct TrainOptions {
  at::Device device = at::kCPU;
  std::uint64_t seed = 0;
  std::int64_t micro_batch_size = 1;
  std::int64_t gradient_accumulation_steps = 1;
  // The first limit reached ends the run; at least one is given.
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> max_steps;
  std::optional<double> max_seconds;
  UpdateOptions update;
  recipe::Interval validate_every;
  std::int64_t validation_micro_batch_size = 1;
  std::optional<EarlyStoppingOptions> early_stopping;  // needs validations
  std::int64_t log_every = 1;
  std::int64_t warmup_steps = 0;
  Graphs graphs = Graphs::kOff;
  bool memory_ledger = false;  // measured once, in a window after the first ones
  recipe::EmptyCache empty_cache = recipe::EmptyCache::kOnOom;
  std::vector<std::string> memory_savers;  // what an out-of-memory error may advise: "precision: bf16-true"
};

// What is trained, and with what. The trainer borrows all of it and knows no kind.
struct TrainParts {
  nn::Module& model;
  at::Tensor flat_buffers;  // of the model (Module::to)
  data::DataSet& data;
  const objectives::Objective& objective;
  optim::Optimizer& optimizer;
  const optim::Schedule& schedule;
  optim::Ema* ema = nullptr;                    // null: nothing is averaged
  device::MemoryLimit* memory_limit = nullptr;  // null: none
};

// Updates in one epoch, and the smallest limit of steps that the options imply (absent: only time ends the
// run).
std::int64_t steps_per_epoch(const TrainOptions& options, std::int64_t train_samples);
std::optional<std::int64_t> total_steps(const TrainOptions& options, std::int64_t train_samples);

// Trains until a limit is reached, validations get no better (early_stopping), `stop` is raised (at the end
// of the step), or losses or gradients are not
// finite for too many windows in a row; each of these is a result. The sink gets every record, in order; its
// start() and finish() are the caller's. `trace` may be null. Numbers are defined in docs/metrics.md.
RunSummary train(const TrainOptions& options, const TrainParts& parts, Sink& sink, const StopFlag& stop,
                 Trace* trace);

}  // namespace gputrain::train
