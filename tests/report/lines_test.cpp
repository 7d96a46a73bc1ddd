#include "report/lines.h"

#include "report/numbers.h"
#include "report/records.h"
#include "support/catch.h"

#include <cmath>
#include <limits>
#include <vector>

using namespace gputrain;
using namespace gputrain::testing;
using report::StepLines;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepLines lines_for(const train::RunInfo& info, std::int64_t log_every) {
  StepLines lines(log_every);
  lines.start(info);
  return lines;
}

std::vector<std::int64_t> steps_with_a_line(StepLines& lines, std::int64_t last_step) {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step <= last_step; ++step) {
    if (lines.step(step_record(step))) steps.push_back(step);
  }
  return steps;
}

}  // namespace

TEST_CASE("step line: has the form of the design", "[report]") {
  StepLines lines = lines_for(small_run(), 120);
  CHECK(lines.step(step_record(120)) ==
        "step 120/5000 | loss 2.314 | gnorm 0.87 | lr 1.0e-01 | 826 img/s | 155 ms (data 1%) | mem 9.8/11.5 "
        "GiB "
        "| 32x4 | eta 13m");
}

TEST_CASE("step line: what is not known is n/a or left out", "[report]") {
  train::RunInfo info;
  info.unit = "tok";
  info.micro_batch_size = 8;
  train::StepRecord record;
  record.step = 1;
  StepLines lines = lines_for(info, 1);
  CHECK(
      lines.step(record) ==
      "step 1 | loss 0.000 | gnorm 0.00 | lr 0.0e+00 | n/a tok/s | n/a (data n/a) | mem n/a | 8x1 | eta n/a");
}

TEST_CASE("step line: memory without a limit stands alone, an estimate is marked", "[report]") {
  train::RunInfo info = small_run();
  info.memory_limit_bytes.reset();
  train::StepRecord record = step_record(1);
  record.memory.device_is_estimate = true;
  CHECK_THAT(*lines_for(info, 1).step(record), ContainsSubstring("| mem ~9.8 GiB |"));
}

TEST_CASE("step line: throughput, time, data wait and peak are over the windows since the last line",
          "[report]") {
  StepLines lines = lines_for(small_run(), 2);
  lines.step(step_record(1));
  lines.step(step_record(2));
  train::StepRecord slow = step_record(3);
  slow.seconds = 0.3;
  slow.data_wait_seconds = 0.2;
  slow.memory.device_peak = 11 * kGiB;
  CHECK_FALSE(lines.step(slow));
  train::StepRecord fast = step_record(4);
  fast.seconds = 0.1;
  fast.data_wait_seconds = 0;
  fast.memory.device_peak = 3 * kGiB;
  CHECK_THAT(*lines.step(fast), ContainsSubstring("| 640 img/s | 200 ms (data 50%) | mem 11.0/11.5 GiB |"));
  CHECK_FALSE(lines.step(step_record(5)));
  CHECK_THAT(*lines.step(step_record(6)),
             ContainsSubstring("| 826 img/s | 155 ms (data 1%) | mem 9.8/11.5 GiB |"));
}

TEST_CASE("step line: warm-up has a time and no throughput, and stays out of the next mean", "[report]") {
  StepLines lines = lines_for(small_run(), 2);
  train::StepRecord warmup = step_record(1);
  warmup.warmup = true;
  warmup.seconds = 3;
  CHECK_THAT(*lines.step(warmup), ContainsSubstring("| n/a img/s | 3000 ms (data 0%) |"));
  warmup.step = 3;
  lines.step(warmup);
  CHECK_THAT(*lines.step(step_record(4)), ContainsSubstring("| 826 img/s | 155 ms (data 1%) |"));
}

TEST_CASE("step line: the first, every log_every-th and the last step have one", "[report]") {
  train::RunInfo info = small_run();
  info.total_steps = 25;
  StepLines lines = lines_for(info, 10);
  CHECK(steps_with_a_line(lines, 25) == std::vector<std::int64_t>{1, 10, 20, 25});
  CHECK_FALSE(lines.finish());
}

TEST_CASE("step line: a run that stops early shows its last step", "[report]") {
  StepLines lines = lines_for(small_run(), 10);
  CHECK(steps_with_a_line(lines, 13) == std::vector<std::int64_t>{1, 10});
  CHECK_THAT(*lines.finish(), ContainsSubstring("step 13/5000 |"));
}

TEST_CASE("step line: skipped windows are counted, and shown also when nothing else happens", "[report]") {
  StepLines lines = lines_for(small_run(), 2);
  lines.step(step_record(1));
  train::StepRecord skipped = step_record(1);
  skipped.skipped = true;
  skipped.loss = kNan;
  skipped.grad_norm = std::numeric_limits<double>::infinity();
  CHECK_FALSE(lines.step(skipped));
  const std::string line = lines.step(skipped).value();
  CHECK_THAT(line, ContainsSubstring("step 1/5000 | loss nan | gnorm inf |"));
  CHECK_THAT(line, ContainsSubstring("| eta 13m | skipped 2"));
}

TEST_CASE("step line: a window without targets has nothing to show but the count", "[report]") {
  StepLines lines = lines_for(small_run(), 1);
  train::StepRecord empty = step_record(0);
  empty.targets = 0;
  empty.skipped = true;
  CHECK_FALSE(lines.step(empty));
  CHECK(lines.progress().empty());
  CHECK_FALSE(lines.finish());
  CHECK_THAT(*lines.step(step_record(1)), ContainsSubstring("step 1/5000 | loss 2.314 |"));
  CHECK_FALSE(lines.step(empty));
  CHECK_FALSE(lines.finish());
  CHECK_THAT(*lines.step(step_record(2)), ContainsSubstring("| skipped 2"));
}

TEST_CASE("progress line: percent, loss, throughput, time left", "[report]") {
  StepLines lines = lines_for(small_run(), 1000);
  CHECK(lines.progress().empty());
  lines.step(step_record(1));
  lines.step(step_record(1250));
  CHECK(lines.progress() == "step 1250/5000 (25%) | loss 2.314 | 826 img/s | eta 13m");
}

TEST_CASE("validation line: has the form of the design", "[report]") {
  CHECK(report::eval_line(small_run(), eval_record()) ==
        "validation at step 235 (epoch 1.0): loss 0.412 | accuracy 85.2% | top5 99.6% | best 85.2% at step "
        "235 | "
        "10,000 img in 1.2 s");
}

TEST_CASE("evaluation line: averaged weights have their numbers beside the others", "[report]") {
  CHECK_THAT(report::eval_line(small_run(), averaged_eval_record()),
             ContainsSubstring("loss 0.412 | ema_loss 0.398 | accuracy 85.2% | top5 99.6% | "
                               "ema_accuracy 86.1% | ema_top5 99.7% | best ema_accuracy 86.1% at step 235"));
}

TEST_CASE("validation line: the best metric is named when it is not the first", "[report]") {
  train::EvalRecord record = eval_record();
  record.best_metric = "top5";
  record.best = 0.997;
  record.best_step = 100;
  CHECK_THAT(report::eval_line(small_run(), record), ContainsSubstring("| best top5 99.7% at step 100 |"));
  record.best_metric = "loss";
  record.best = 0.4;
  CHECK_THAT(report::eval_line(small_run(), record), ContainsSubstring("| best loss 0.400 at step 100 |"));
}

TEST_CASE("start line: parameters, samples, steps", "[report]") {
  CHECK(report::start_line(small_run()) ==
        "fashion: 11,173,962 parameters | 60,000 training and 10,000 validation samples | 5,000 steps");
}

TEST_CASE("numbers: three digits where a column holds different sizes", "[report]") {
  CHECK(report::rate_text(6139.4) == "6,139");
  CHECK(report::rate_text(999.6) == "1,000");
  CHECK(report::rate_text(826.4) == "826");
  CHECK(report::rate_text(99.96) == "100");
  CHECK(report::rate_text(82.64) == "82.6");
  CHECK(report::rate_text(8.264) == "8.26");
  CHECK(report::rate_text(std::nullopt) == "n/a");
  CHECK(report::milliseconds_text(0.00155) == "1.55 ms");
  CHECK(report::milliseconds_text(12.3) == "12300 ms");
}

TEST_CASE("numbers: small and large values stay readable", "[report]") {
  CHECK(report::loss_text(0.00004) == "4.0e-05");
  CHECK(report::loss_text(0) == "0.000");
  CHECK(report::loss_text(-1.5) == "-1.500");
  CHECK(report::loss_text(1e30) == "1.0e+30");
  CHECK(report::loss_text(-kNan) == "nan");
  CHECK(report::norm_text(0.004) == "4.0e-03");
  CHECK(report::percent_text(kNan, 1) == "n/a");
  CHECK(report::seconds_text(59.97) == "1m 00s");
  CHECK(report::seconds_text(116.4) == "1m 56s");
  CHECK(report::seconds_text(3725) == "1h 02m");
}
