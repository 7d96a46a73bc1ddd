#include "report/summary.h"

#include "base/text.h"
#include "base/units.h"
#include "report/json_records.h"
#include "report/lines.h"
#include "report/numbers.h"

#include <optional>
#include <vector>

namespace gputrain::report {
namespace {

std::string row(const std::string& name, const std::string& text) {
  constexpr std::size_t kNameWidth = 13;
  return "  " + name + std::string(kNameWidth - name.size(), ' ') + text + "\n";
}

std::string headline(const train::RunInfo& info, const train::RunSummary& summary) {
  std::string line = concat(info.name, ": ", to_text(summary.reason));
  if (!summary.problem.empty()) line += ": " + summary.problem;
  return line + "\n";
}

std::string skipped_text(const train::RunSummary& summary) {
  if (summary.skipped == 0) return "";
  const std::int64_t empty = summary.skipped_without_targets;
  const std::string of_these = empty > 0 ? concat(", ", format_count(empty), " of them without targets") : "";
  return concat(" (", format_count(summary.skipped), " skipped", of_these, ")");
}

std::string steps_text(const train::RunInfo& info, const train::RunSummary& summary) {
  return concat(format_count(summary.steps), skipped_text(summary), " | ", fixed(summary.epochs, 1),
                " epochs | ", format_count(summary.samples), " ", info.unit);
}

std::string memory_text(const device::MemoryReading& memory) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::optional<std::int64_t>& bytes, const char* mark) {
    if (bytes) parts.push_back(concat(name, " ", mark, format_bytes(*bytes)));
  };
  add("device", memory.device_peak, memory.device_is_estimate ? "~" : "");
  add("reserved", memory.reserved_peak, "");
  add("allocated", memory.allocated_peak, "");
  return parts.empty() ? "n/a" : join(parts, " | ");
}

std::string time_text(const train::RunSummary& summary) {
  return concat("start-up ", seconds_text(summary.startup_seconds), " | training ",
                seconds_text(summary.training_seconds), " (of it warm-up ",
                seconds_text(summary.warmup_seconds), ", data wait ", seconds_text(summary.data_wait_seconds),
                ") | validation ", seconds_text(summary.validation_seconds), " | saving ",
                seconds_text(summary.saving_seconds));
}

std::string first_step_text(const train::RunSummary& summary) {
  if (!(summary.first_step_seconds > 0)) return "n/a";
  return "done " + seconds_text(summary.first_step_seconds) + " after the start";
}

std::string results(const train::RunSummary& summary) {
  std::string text;
  if (summary.final_loss) text += row("loss", loss_text(*summary.final_loss));
  if (!summary.last_eval) return text;
  text += row("validation", result_text(*summary.last_eval));
  if (!summary.last_eval->best_metric.empty()) text += row("best", best_text(*summary.last_eval));
  return text;
}

}  // namespace

std::string_view to_text(train::StopReason reason) {
  switch (reason) {
    case train::StopReason::kEpochs:
      return "done, all epochs trained";
    case train::StopReason::kMaxSteps:
      return "done, max_steps reached";
    case train::StopReason::kMaxTime:
      return "done, max_time reached";
    case train::StopReason::kInterrupted:
      return "stopped by SIGINT";
    case train::StopReason::kTerminated:
      return "stopped by SIGTERM";
    case train::StopReason::kNotFinite:
      return "stopped, loss or gradients are not finite";
    case train::StopReason::kEarlyStopped:
      return "done, stopped early";
  }
  return "";
}

std::string_view to_word(train::StopReason reason) {
  switch (reason) {
    case train::StopReason::kEpochs:
      return "epochs";
    case train::StopReason::kMaxSteps:
      return "max_steps";
    case train::StopReason::kMaxTime:
      return "max_time";
    case train::StopReason::kInterrupted:
      return "interrupted";
    case train::StopReason::kTerminated:
      return "terminated";
    case train::StopReason::kNotFinite:
      return "not_finite";
    case train::StopReason::kEarlyStopped:
      return "early_stopped";
  }
  return "";
}

std::string_view to_word(train::SkipReason reason) {
  return reason == train::SkipReason::kNoTargets ? "no_targets" : "not_finite";
}

std::string summary_text(const train::RunInfo& info, const train::RunSummary& summary) {
  std::string text = headline(info, summary);
  text += row("steps", steps_text(info, summary));
  text += results(summary);
  text += row("throughput", concat(rate_text(summary.samples_per_second), " ", info.unit, "/s"));
  text += row("peak memory", memory_text(summary.memory));
  text += row("time", time_text(summary));
  text += row("first step", first_step_text(summary));
  for (std::size_t i = 0; i < summary.written.size(); ++i) {
    text += row(i == 0 ? "written" : "", summary.written[i]);
  }
  return text;
}

std::string summary_json(const train::RunInfo& info, const train::RunSummary& summary) {
  return json_line(to_json(info, summary));
}

}  // namespace gputrain::report
