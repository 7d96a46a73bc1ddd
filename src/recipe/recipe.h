#pragma once

#include "recipe/visitor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::recipe {

// kAuto: bf16-mixed on GPUs that compute in bfloat16, fp16-mixed on others, fp32 on a CPU.
enum class Precision { kAuto, kFp32, kTf32, kFp16Mixed, kBf16Mixed, kFp16True, kBf16True };

enum class OnNonFinite { kSkip, kStop };

// kAuto: kDefault, LibTorch's own.
enum class CudaAllocator { kAuto, kExpandable, kDefault };

// When memory that LibTorch keeps for later goes back to the driver. Each includes those before it.
enum class EmptyCache { kNever, kOnOom, kBeforeValidation, kEveryStep };

struct LossScale {
  std::optional<double> fixed;
  double init = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  double min = 1;
  double max = 16777216;

  bool operator==(const LossScale&) const = default;
};

// What is computed again in the backward pass in place of being kept.
struct ActivationCheckpointing {
  enum class Mode { kNone, kFull, kSelective };
  Mode mode = Mode::kNone;  // load_recipe: kFull where a key beside it is given
  std::optional<std::int64_t> every;
  std::vector<std::string> match;
};

struct Ema {
  double decay = 0;  // 0: nothing is averaged
  bool warmup = false;
};

struct Validation {
  Interval every{1, Interval::Unit::kEpochs};
  std::optional<std::int64_t> micro_batch_size;  // absent: as in training
};

struct EarlyStopping {
  std::optional<std::int64_t> patience;  // absent: off
  double min_delta = 0;
  std::string metric = "auto";

  bool operator==(const EarlyStopping&) const = default;
};

struct Logging {
  std::int64_t log_every = 10;
  bool jsonl = true;
  bool csv = false;
  bool tensorboard = true;
  std::optional<bool> progress;      // absent: where stderr is a terminal
  std::optional<std::string> trace;  // relative to the run directory
  std::int64_t warmup_steps = 3;
};

struct Cuda {
  std::optional<bool> channels_last;
  std::optional<bool> cudnn_benchmark;
  std::optional<bool> graphs;
  CudaAllocator allocator = CudaAllocator::kAuto;
  EmptyCache empty_cache = EmptyCache::kOnOom;
};

struct Memory {
  std::optional<std::int64_t> limit;  // of the process on the device; absent: none
  bool ledger = false;
  bool snapshot = false;
};

struct Cpu {
  std::optional<std::int64_t> threads;
};

// What a run is asked to do, as plain validated data. describe() is the one place that names its keys.
struct Recipe {
  std::string name;        // load_recipe: the file's name without its ending
  std::string output_dir;  // relative to the working directory; load_recipe: runs/<name>
  std::int64_t seed = 1;
  std::string device = "auto";  // auto, cpu, cuda, cuda:N
  Precision precision = Precision::kAuto;
  bool deterministic = false;
  // Any two give the third; load_recipe sets all three.
  std::optional<std::int64_t> micro_batch_size;
  std::optional<std::int64_t> gradient_accumulation_steps;
  std::optional<std::int64_t> global_batch_size;
  std::optional<std::int64_t>
      epochs;  // the first limit reached ends the run; load_recipe demands one of the three
  std::optional<std::int64_t> max_steps;
  std::optional<double> max_time;  // seconds
  Choice model;
  Choice data;
  Choice objective{"cross_entropy", {}};
  std::vector<std::string> freeze;
  Choice optimizer{"sgd", {}};
  Choice lr_scheduler{"constant", {}};
  std::optional<double> max_grad_norm;
  std::optional<double> max_grad_value;
  LossScale loss_scale;
  ActivationCheckpointing activation_checkpointing;
  Ema ema;
  OnNonFinite on_nonfinite = OnNonFinite::kSkip;
  std::int64_t max_skipped = 50;
  Validation validation;
  EarlyStopping early_stopping;
  Logging logging;
  Memory memory;
  Cuda cuda;
  Cpu cpu;
};

void describe(Visitor& v, Recipe& recipe);

}  // namespace gputrain::recipe
