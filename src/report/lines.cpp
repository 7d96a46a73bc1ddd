#include "report/lines.h"

#include "base/text.h"
#include "base/units.h"
#include "report/numbers.h"

#include <algorithm>

namespace gputrain::report {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string gib(std::int64_t bytes) {
  return fixed(static_cast<double>(bytes) / kGiB, 1);
}

}  // namespace

std::string result_text(const train::EvalRecord& record) {
  std::string text = "loss " + loss_text(record.loss);
  if (record.ema_loss) text += " | ema_loss " + loss_text(*record.ema_loss);
  for (const train::Metric& metric : record.metrics) {
    text += concat(" | ", metric.name, " ", percent_text(metric.value, 1));
  }
  return text;
}

std::string best_text(const train::EvalRecord& record) {
  const auto& metrics = record.metrics;
  const auto followed = std::find_if(metrics.begin(), metrics.end(),
                                     [&](const train::Metric& m) { return m.name == record.best_metric; });
  const bool is_fraction = followed != metrics.end();
  const std::string value = is_fraction ? percent_text(record.best, 1) : loss_text(record.best);
  const std::string name = followed == metrics.begin() ? "" : record.best_metric + " ";
  return concat(name, value, " at step ", record.best_step);
}

std::string start_line(const train::RunInfo& info) {
  std::string line =
      concat(info.name, ": ", format_count(info.parameters), " parameters",
             info.frozen_parameters > 0 ? concat(" (", format_count(info.frozen_parameters), " frozen)") : "",
             " | ", format_count(info.train_samples), " training ");
  if (info.validation_samples > 0) {
    line += concat("and ", format_count(info.validation_samples), " validation ");
  }
  line += "samples";
  if (info.total_steps) line += concat(" | ", format_count(*info.total_steps), " steps");
  return line;
}

std::string eval_line(const train::RunInfo& info, const train::EvalRecord& record) {
  std::string line = concat("validation at step ", record.step, " (epoch ", fixed(record.epoch, 1),
                            "): ", result_text(record));
  if (!record.best_metric.empty()) line += " | best " + best_text(record);
  return line +
         concat(" | ", format_count(record.samples), " ", info.unit, " in ", seconds_text(record.seconds));
}

void StepLines::Times::add(const train::StepRecord& record) {
  ++windows;
  seconds += record.seconds;
  data_wait_seconds += record.data_wait_seconds;
}

void StepLines::start(const train::RunInfo& info) {
  info_ = info;
}

std::optional<std::string> StepLines::step(const train::StepRecord& record) {
  if (record.skipped) ++skipped_;
  since_line_.throughput.add(record);
  (record.warmup ? since_line_.warmup : since_line_.measured).add(record);
  const auto peak = record.memory.device_peak ? record.memory.device_peak : record.memory.device;
  since_line_.device_peak = std::max(since_line_.device_peak, peak);
  if (!train::was_computed(record)) return std::nullopt;
  ++since_line_.windows;
  last_ = record;
  if (!due()) return std::nullopt;
  return take_line();
}

std::optional<std::string> StepLines::finish() {
  if (since_line_.windows == 0) return std::nullopt;
  return take_line();
}

std::string StepLines::progress() const {
  if (!last_) return "";
  std::string text = step_text();
  if (info_.total_steps && *info_.total_steps > 0) {
    text += concat(" (", 100 * last_->step / *info_.total_steps, "%)");
  }
  return concat(text, " | loss ", loss_text(last_->loss), " | ", speed_text(), " | eta ", eta_text());
}

bool StepLines::due() const {
  if (!any_line_ || last_->step == info_.total_steps) return true;
  if (last_->skipped) return since_line_.windows >= log_every_;
  return last_->step % log_every_ == 0;
}

std::string StepLines::take_line() {
  std::string line = concat(
      step_text(), " | loss ", loss_text(last_->loss), " | gnorm ", norm_text(last_->grad_norm), " | lr ",
      scientific(last_->learning_rate), " | ", speed_text(), " | ", time_text(), " | mem ", memory_text(),
      " | ", info_.micro_batch_size, "x", info_.gradient_accumulation_steps, " | eta ", eta_text());
  if (last_->loss_scale) line += concat(" | scale ", shortest(*last_->loss_scale));
  if (skipped_ > 0) line += concat(" | skipped ", skipped_);
  any_line_ = true;
  since_line_ = Interval();
  return line;
}

std::string StepLines::step_text() const {
  return info_.total_steps ? concat("step ", last_->step, "/", *info_.total_steps)
                           : concat("step ", last_->step);
}

std::string StepLines::speed_text() const {
  return concat(rate_text(since_line_.throughput.rate()), " ", info_.unit, "/s");
}

std::string StepLines::time_text() const {
  const Times& times = since_line_.measured.windows > 0 ? since_line_.measured : since_line_.warmup;
  if (times.windows == 0 || !(times.seconds > 0)) return "n/a (data n/a)";
  return concat(milliseconds_text(times.seconds / static_cast<double>(times.windows)), " (data ",
                percent_text(times.data_wait_seconds / times.seconds, 0), ")");
}

std::string StepLines::memory_text() const {
  if (!since_line_.device_peak) return "n/a";
  const std::string used = (last_->memory.device_is_estimate ? "~" : "") + gib(*since_line_.device_peak);
  const auto limit = info_.memory_limit_bytes;
  return limit ? concat(used, "/", gib(*limit), " GiB") : used + " GiB";
}

std::string StepLines::eta_text() const {
  return last_->eta_seconds ? format_duration(*last_->eta_seconds) : "n/a";
}

}  // namespace gputrain::report
