#include "train/early_stopping.h"

#include "support/catch.h"
#include "train/support.h"

#include <cmath>

namespace gputrain::train {
namespace {

EvalRecord validation(std::int64_t step, double loss, double accuracy) {
  EvalRecord record;
  record.step = step;
  record.loss = loss;
  record.metrics = {{"accuracy", accuracy}};
  record.best_metric = "accuracy";
  return record;
}

// After which of these accuracies the run ends, counted from 1; 0: after none.
int ends_after(const EarlyStoppingOptions& options, const std::vector<double>& values,
               bool are_losses = false) {
  EarlyStopping stopping(options);
  for (std::size_t i = 0; i < values.size(); ++i) {
    stopping.take(validation(0, are_losses ? values[i] : 0, are_losses ? 0 : values[i]));
    if (stopping.is_due()) return static_cast<int>(i) + 1;
  }
  return 0;
}

}  // namespace

TEST_CASE("early stopping: ends after `patience` validations in a row that are no better", "[train]") {
  CHECK(ends_after({.patience = 2}, {0.5, 0.6, 0.6, 0.55}) == 4);
  CHECK(ends_after({.patience = 2}, {0.5, 0.4, 0.51, 0.4, 0.52}) == 0);
  CHECK(ends_after({.patience = 1}, {0.5, 0.5}) == 2);
  CHECK(ends_after({.patience = 3}, {0.0, 0.0, 0.0, 0.0}) == 4);
}

TEST_CASE("early stopping: an improvement is more than min_delta, from the best that was one", "[train]") {
  const EarlyStoppingOptions options{.patience = 2, .min_delta = 0.125};
  CHECK(ends_after(options, {0.5, 0.625, 0.625}) == 3);
  // In small steps, too, it gets far enough.
  CHECK(ends_after(options, {0.5, 0.5625, 0.6875, 0.75, 0.875}) == 0);
}

TEST_CASE("early stopping: a loss improves by falling", "[train]") {
  const EarlyStoppingOptions options{.patience = 2, .min_delta = 0.25, .metric = "loss"};
  CHECK(ends_after(options, {3, 2, 1.5, 1, 0.75, 0.75}, true) == 6);
  CHECK(ends_after({.patience = 2, .metric = "loss"}, {1, 2, 3}, true) == 3);
}

TEST_CASE("early stopping: what is not a number improves nothing, and is no best either", "[train]") {
  const double nan = std::nan("");
  CHECK(ends_after({.patience = 2, .metric = "loss"}, {nan, nan}, true) == 2);
  CHECK(ends_after({.patience = 2, .metric = "loss"}, {nan, 1, nan, 0.5, nan, nan}, true) == 6);
}

TEST_CASE("early stopping: says what did not improve, and since when", "[train]") {
  EarlyStopping stopping({.patience = 2, .min_delta = 0.01});
  for (const std::int64_t step : {4, 8, 12}) stopping.take(validation(step, 1, 0.5));
  CHECK(stopping.reason() == "accuracy has not risen by more than 0.01 in 2 validations, since step 4");
  EarlyStopping by_loss({.patience = 1, .metric = "loss"});
  by_loss.take(validation(4, std::nan(""), 0.5));
  CHECK(by_loss.reason() == "loss has not fallen in 1 validation");
}

TEST_CASE("early stopping: numbers to judge by are the objective's, and with averages theirs", "[train]") {
  const auto objective = bound(objectives::all_objectives(), "cross_entropy").build({10});
  CHECK(judged_numbers(*objective, false) == std::vector<std::string>{"loss", "accuracy", "top5"});
  CHECK(judged_numbers(*objective, true) ==
        std::vector<std::string>{"loss", "accuracy", "top5", "ema_loss", "ema_accuracy", "ema_top5"});
}

TEST_CASE("trainer: a run whose validations stay as they are is stopped early", "[train]") {
  Bench bench(12, 5);
  bench.options.micro_batch_size = 3;
  bench.options.epochs = 100;
  bench.options.early_stopping = EarlyStoppingOptions{.patience = 3};
  bench.schedule = [](std::int64_t) { return 0.0; };
  const RunSummary summary = bench.train();
  CHECK(summary.reason == StopReason::kEarlyStopped);
  CHECK(bench.recorder.evals.size() == 4);
  CHECK(summary.steps == 16);
}

TEST_CASE("trainer: early stopping with averages follows those", "[train]") {
  Bench bench(12, 5);
  bench.options.micro_batch_size = 3;
  bench.options.epochs = 100;
  bench.options.early_stopping = EarlyStoppingOptions{.patience = 2};
  bench.average({.decay = 0.999999});  // they stay where they began
  const RunSummary summary = bench.train();
  CHECK(summary.reason == StopReason::kEarlyStopped);
  CHECK(bench.recorder.evals.size() == 3);
}

TEST_CASE("trainer: a limit that is reached with the last validation is the reason, not early stopping",
          "[train]") {
  Bench bench(12, 5);
  bench.options.micro_batch_size = 3;
  bench.options.epochs = 2;
  bench.options.early_stopping = EarlyStoppingOptions{.patience = 1};
  bench.schedule = [](std::int64_t) { return 0.0; };
  CHECK(bench.train().reason == StopReason::kEpochs);
}

}  // namespace gputrain::train
