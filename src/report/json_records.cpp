#include "report/json_records.h"

#include "report/summary.h"
#include "train/throughput.h"

#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

namespace gputrain::report {
namespace {

void put(Json& object, const std::string& name, double value) {
  object[name] = std::isfinite(value) ? Json(value) : Json();
  if (std::isfinite(value)) return;
  object[name + "_text"] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

template <class Value>
void put(Json& object, const std::string& name, const std::optional<Value>& value) {
  if (!value) {
    object[name] = Json();
  } else if constexpr (std::is_same_v<Value, double>) {
    put(object, name, *value);
  } else {
    object[name] = *value;
  }
}

Json metrics_object(const std::vector<train::Metric>& metrics) {
  Json object = Json::object();
  for (const train::Metric& metric : metrics) put(object, metric.name, metric.value);
  return object;
}

void put(Json& object, const device::MemoryReading& memory) {
  put(object, "memory_allocated_bytes", memory.allocated);
  put(object, "memory_reserved_bytes", memory.reserved);
  put(object, "memory_device_bytes", memory.device);
  put(object, "memory_allocated_peak_bytes", memory.allocated_peak);
  put(object, "memory_reserved_peak_bytes", memory.reserved_peak);
  put(object, "memory_device_peak_bytes", memory.device_peak);
  object["memory_device_is_estimate"] = memory.device_is_estimate;
}

void put_times(Json& object, const train::RunSummary& summary) {
  put(object, "startup_seconds", summary.startup_seconds);
  put(object, "first_step_seconds", summary.first_step_seconds);
  put(object, "training_seconds", summary.training_seconds);
  put(object, "warmup_seconds", summary.warmup_seconds);
  put(object, "data_wait_seconds", summary.data_wait_seconds);
  put(object, "validation_seconds", summary.validation_seconds);
  put(object, "saving_seconds", summary.saving_seconds);
}

}  // namespace

Json to_json(const train::RunInfo& info) {
  Json object;
  object["name"] = info.name;
  object["unit"] = info.unit;
  put(object, "total_steps", info.total_steps);
  object["micro_batch_size"] = info.micro_batch_size;
  object["gradient_accumulation_steps"] = info.gradient_accumulation_steps;
  object["parameters"] = info.parameters;
  object["frozen_parameters"] = info.frozen_parameters;
  object["train_samples"] = info.train_samples;
  object["validation_samples"] = info.validation_samples;
  put(object, "memory_limit_bytes", info.memory_limit_bytes);
  return object;
}

Json to_json(const train::StepRecord& record) {
  Json object;
  object["step"] = record.step;
  object["window"] = record.window;
  put(object, "epoch", record.epoch);
  object["samples"] = record.samples;
  object["samples_total"] = record.samples_total;
  object["targets"] = record.targets;
  object["micro_batches"] = record.micro_batches;
  const bool computed = train::was_computed(record);
  put(object, "loss", computed ? std::optional(record.loss) : std::nullopt);
  put(object, "grad_norm", computed ? std::optional(record.grad_norm) : std::nullopt);
  put(object, "learning_rate", record.learning_rate);
  object["skipped"] = record.skipped;
  const std::optional<train::SkipReason> reason = train::skip_reason(record);
  object["skip_reason"] = reason ? Json(to_word(*reason)) : Json();
  put(object, "loss_scale", record.loss_scale);
  object["warmup"] = record.warmup;
  put(object, "seconds", record.seconds);
  put(object, "data_wait_seconds", record.data_wait_seconds);
  put(object, "samples_per_second", train::samples_per_second(record));
  put(object, "eta_seconds", record.eta_seconds);
  put(object, record.memory);
  return object;
}

Json to_json(const train::EvalRecord& record) {
  Json object;
  object["step"] = record.step;
  put(object, "epoch", record.epoch);
  object["samples"] = record.samples;
  put(object, "loss", record.loss);
  put(object, "ema_loss", record.ema_loss);
  object["metrics"] = metrics_object(record.metrics);
  object["best_metric"] = record.best_metric;
  put(object, "best", record.best);
  object["best_step"] = record.best_step;
  put(object, "seconds", record.seconds);
  return object;
}

Json to_json(const train::RunInfo& info, const train::RunSummary& summary) {
  Json object;
  object["name"] = info.name;
  object["reason"] = to_word(summary.reason);
  object["problem"] = summary.problem.empty() ? Json() : Json(summary.problem);
  object["steps"] = summary.steps;
  object["skipped"] = summary.skipped;
  object["skipped_without_targets"] = summary.skipped_without_targets;
  put(object, "epochs", summary.epochs);
  object["samples"] = summary.samples;
  object["unit"] = info.unit;
  put(object, "final_loss", summary.final_loss);
  object["last_eval"] = summary.last_eval ? to_json(*summary.last_eval) : Json();
  put(object, "samples_per_second", summary.samples_per_second);
  put(object, summary.memory);
  put_times(object, summary);
  object["written"] = summary.written;
  return object;
}

std::string json_line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gputrain::report
