#pragma once

#include "train/records.h"

namespace gputrain::testing {

inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

inline train::RunInfo small_run() {
  train::RunInfo info;
  info.name = "fashion";
  info.unit = "img";
  info.total_steps = 5000;
  info.micro_batch_size = 32;
  info.gradient_accumulation_steps = 4;
  info.parameters = 11173962;
  info.train_samples = 60000;
  info.validation_samples = 10000;
  info.memory_limit_bytes = 23 * kGiB / 2;
  return info;
}

// A window of 128 samples in 155 ms, 1.55 ms of it waiting for data.
inline train::StepRecord step_record(std::int64_t step) {
  train::StepRecord record;
  record.step = step;
  record.window = step;
  record.epoch = 0.25;
  record.samples = 128;
  record.samples_total = 128 * step;
  record.targets = 128;
  record.micro_batches = 4;
  record.loss = 2.3141;
  record.grad_norm = 0.866;
  record.learning_rate = 0.1;
  record.seconds = 0.155;
  record.data_wait_seconds = 0.00155;
  record.eta_seconds = 780;
  record.memory.allocated = 5 * kGiB;
  record.memory.reserved = 6 * kGiB;
  record.memory.device = 7 * kGiB;
  record.memory.allocated_peak = 8 * kGiB;
  record.memory.reserved_peak = 9 * kGiB;
  record.memory.device_peak = 98 * kGiB / 10;
  return record;
}

inline train::EvalRecord eval_record() {
  train::EvalRecord record;
  record.step = 235;
  record.epoch = 1;
  record.samples = 10000;
  record.loss = 0.412;
  record.metrics = {{"accuracy", 0.852}, {"top5", 0.996}};
  record.best_metric = "accuracy";
  record.best = 0.852;
  record.best_step = 235;
  record.seconds = 1.2;
  return record;
}

// Of a run that averages its weights.
inline train::EvalRecord averaged_eval_record() {
  train::EvalRecord record = eval_record();
  record.ema_loss = 0.398;
  record.metrics.push_back({"ema_accuracy", 0.861});
  record.metrics.push_back({"ema_top5", 0.997});
  record.best_metric = "ema_accuracy";
  record.best = 0.861;
  return record;
}

inline train::RunSummary run_summary() {
  train::RunSummary summary;
  summary.reason = train::StopReason::kEpochs;
  summary.steps = 5000;
  summary.skipped = 3;
  summary.epochs = 10.67;
  summary.samples = 640384;
  summary.final_loss = 0.125;
  summary.last_eval = eval_record();
  summary.samples_per_second = 826.4;
  summary.memory = step_record(1).memory;
  summary.startup_seconds = 2.25;
  summary.first_step_seconds = 3.5;
  summary.training_seconds = 775;
  summary.warmup_seconds = 4;
  summary.data_wait_seconds = 7.75;
  summary.validation_seconds = 12;
  summary.saving_seconds = 0.5;
  summary.written = {"runs/fashion/metrics.jsonl", "runs/fashion/model.safetensors"};
  return summary;
}

}  // namespace gputrain::testing
