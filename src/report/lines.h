#pragma once

#include "train/records.h"
#include "train/throughput.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gputrain::report {

// "fashion-resnet18: 11,173,962 parameters | 60,000 training and 10,000 validation samples | 2,345 steps"
std::string start_line(const train::RunInfo& info);

// "validation at step 235 (epoch 1.0): loss 0.412 | accuracy 85.2% | …"
std::string eval_line(const train::RunInfo& info, const train::EvalRecord& record);

// Its parts. "loss 0.412 | accuracy 85.2% | top5 99.6%"; "85.2% at step 235", with the metric's name in
// front when it is not the first one.
std::string result_text(const train::EvalRecord& record);
std::string best_text(const train::EvalRecord& record);

// Decides which windows get a line and writes it; docs/metrics.md has the form. Throughput, milliseconds,
// data wait and peak memory are over the windows since the last line.
class StepLines {
 public:
  explicit StepLines(std::int64_t log_every) : log_every_(log_every) {}

  void start(const train::RunInfo& info);
  // The line, when this window has one: the first, the last, every log_every-th step, and every
  // log_every windows while all are skipped. One without targets has nothing to show but the count.
  std::optional<std::string> step(const train::StepRecord& record);
  // The line of the last window, unless step() gave it already.
  std::optional<std::string> finish();
  // A shorter line about the newest window: progress in percent, loss, throughput, time left.
  std::string progress() const;

 private:
  bool due() const;
  std::string take_line();
  std::string step_text() const;
  std::string speed_text() const;
  std::string time_text() const;
  std::string memory_text() const;
  std::string eta_text() const;

  struct Times {
    std::int64_t windows = 0;
    double seconds = 0;
    double data_wait_seconds = 0;
    void add(const train::StepRecord& record);
  };
  struct Interval {
    std::int64_t windows = 0;  // that were computed
    train::Throughput throughput;
    Times measured;
    Times warmup;
    std::optional<std::int64_t> device_peak;
  };

  std::int64_t log_every_;
  train::RunInfo info_;
  std::optional<train::StepRecord> last_;  // the newest window that was computed
  std::int64_t skipped_ = 0;
  bool any_line_ = false;
  Interval since_line_;
};

}  // namespace gputrain::report
