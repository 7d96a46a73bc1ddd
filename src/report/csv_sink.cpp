#include "report/csv_sink.h"

#include "base/text.h"
#include "report/output_file.h"
#include "report/summary.h"
#include "train/throughput.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gputrain::report {
namespace {

std::string cell(double value) {
  return shortest(value);
}
std::string cell(std::int64_t value) {
  return std::to_string(value);
}
std::string cell(bool value) {
  return value ? "1" : "0";
}

template <class Value>
std::string cell(const std::optional<Value>& value) {
  return value ? cell(*value) : "";
}

// RFC 4180: text with a comma, a quote or a line break stands in quotes.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

using Row = std::vector<std::pair<std::string, std::string>>;  // column and cell

void add_metrics(Row& row, const std::vector<train::Metric>& metrics) {
  for (const train::Metric& metric : metrics) row.emplace_back(cell(metric.name), cell(metric.value));
}

Row row_of(const train::StepRecord& record) {
  const device::MemoryReading& memory = record.memory;
  const bool computed = train::was_computed(record);
  const std::optional<train::SkipReason> reason = train::skip_reason(record);
  Row row{{"step", cell(record.step)},
          {"window", cell(record.window)},
          {"epoch", cell(record.epoch)},
          {"samples", cell(record.samples)},
          {"samples_total", cell(record.samples_total)},
          {"targets", cell(record.targets)},
          {"micro_batches", cell(record.micro_batches)},
          {"loss", computed ? cell(record.loss) : ""},
          {"grad_norm", computed ? cell(record.grad_norm) : ""},
          {"learning_rate", cell(record.learning_rate)},
          {"skipped", cell(record.skipped)},
          {"skip_reason", reason ? std::string(to_word(*reason)) : ""},
          {"loss_scale", cell(record.loss_scale)},
          {"warmup", cell(record.warmup)},
          {"seconds", cell(record.seconds)},
          {"data_wait_seconds", cell(record.data_wait_seconds)},
          {"samples_per_second", cell(train::samples_per_second(record))},
          {"memory_allocated_bytes", cell(memory.allocated)},
          {"memory_reserved_bytes", cell(memory.reserved)},
          {"memory_device_bytes", cell(memory.device)},
          {"memory_allocated_peak_bytes", cell(memory.allocated_peak)},
          {"memory_reserved_peak_bytes", cell(memory.reserved_peak)},
          {"memory_device_peak_bytes", cell(memory.device_peak)},
          {"memory_device_is_estimate", cell(memory.device_is_estimate)}};
  return row;
}

Row row_of(const train::EvalRecord& record) {
  Row row{{"step", cell(record.step)},
          {"epoch", cell(record.epoch)},
          {"samples", cell(record.samples)},
          {"loss", cell(record.loss)},
          {"best_metric", cell(record.best_metric)},
          {"best", cell(record.best)},
          {"best_step", cell(record.best_step)},
          {"seconds", cell(record.seconds)}};
  if (record.ema_loss) row.emplace_back("ema_loss", cell(record.ema_loss));
  add_metrics(row, record.metrics);
  return row;
}

// The first row fixes the columns; a later row leaves the cells empty that it lacks.
class Table {
 public:
  explicit Table(const std::filesystem::path& path) : file_(path) {}

  void append(const Row& row) {
    std::string text;
    if (columns_.empty()) {
      for (const auto& [column, value] : row) columns_.push_back(column);
      if (file_.empty()) text = join(columns_, ",") + "\n";
    }
    std::vector<std::string> cells;
    for (const std::string& column : columns_) {
      const auto found =
          std::find_if(row.begin(), row.end(), [&](const auto& c) { return c.first == column; });
      cells.push_back(found == row.end() ? "" : found->second);
    }
    file_.append(text + join(cells, ",") + "\n");
  }

 private:
  OutputFile file_;
  std::vector<std::string> columns_;
};

class CsvSink : public train::Sink {
 public:
  explicit CsvSink(const std::filesystem::path& folder)
      : steps_(folder / "metrics.csv"), evals_path_(folder / "evals.csv") {}

  void start(const train::RunInfo&) override {}
  void step(const train::StepRecord& record) override { steps_.append(row_of(record)); }
  void eval(const train::EvalRecord& record) override {
    if (!evals_) evals_.emplace(evals_path_);
    evals_->append(row_of(record));
  }
  void notice(const std::string&) override {}
  void finish(const train::RunSummary&) override {}

 private:
  Table steps_;
  std::filesystem::path evals_path_;
  std::optional<Table> evals_;  // its columns are known, and the file is made, at the first evaluation
};

}  // namespace

std::unique_ptr<train::Sink> csv_sink(const std::filesystem::path& folder) {
  return std::make_unique<CsvSink>(folder);
}

}  // namespace gputrain::report
