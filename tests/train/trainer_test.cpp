#include "train/trainer.h"

#include "optim/freeze.h"
#include "support/catch.h"
#include "train/evaluate.h"
#include "train/support.h"
#include "train/trace.h"

#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <limits>
#include <optional>

namespace gputrain::train {
namespace {

using Split = std::pair<std::int64_t, std::int64_t>;  // micro-batch size, accumulation

Bench trained(Split split, std::int64_t samples, std::int64_t epochs) {
  Bench bench(samples);
  bench.options.micro_batch_size = split.first;
  bench.options.gradient_accumulation_steps = split.second;
  bench.options.epochs = epochs;
  bench.train();
  return bench;
}

// Points of which every third has a target.
class SparsePoints : public Points {
 public:
  using Points::Points;
  std::int64_t targets(const std::vector<std::int64_t>& ids) const override {
    return std::count_if(ids.begin(), ids.end(), [](std::int64_t id) { return id % 3 == 0; });
  }
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    nn::Batch batch = Points::batch(ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (SparsePoints::targets({ids[i]}) == 0) batch.target[static_cast<std::int64_t>(i)].fill_(-100);
    }
    batch.targets = SparsePoints::targets(ids);
    return batch;
  }
};

// The same, but where there is a target the input is not a number.
class BadPoints : public SparsePoints {
 public:
  using SparsePoints::SparsePoints;
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    nn::Batch batch = SparsePoints::batch(ids);
    if (batch.targets > 0) batch.input.fill_(std::numeric_limits<float>::quiet_NaN());
    return batch;
  }
};

class OneBadPoint : public Points {
 public:
  using Points::Points;
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    nn::Batch batch = Points::batch(ids);
    if (ids.front() == 3) batch.input.fill_(std::numeric_limits<float>::quiet_NaN());
    return batch;
  }
};

// What a window could have changed, after each of them.
class HashingRecorder : public Recorder {
 public:
  explicit HashingRecorder(const Bench& bench) : bench_(bench) {}
  void step(const StepRecord& record) override {
    Recorder::step(record);
    hashes.push_back({hash_tensors(bench_.model->named_parameters()),
                      hash_tensors(bench_.model->named_buffers()), hash_tensors(bench_.optimizer->state())});
  }

  std::vector<std::array<std::uint64_t, 3>> hashes;

 private:
  const Bench& bench_;
};

RunSummary train_with(Bench& bench, Sink& sink) {
  const StopFlag stop;
  return train(
      bench.options,
      {*bench.model, bench.flat_buffers, bench.data, *bench.objective, *bench.optimizer, bench.schedule},
      sink, stop, nullptr);
}

}  // namespace

TEST_CASE("trainer: more micro-batches in a window than in an epoch still give one update an epoch",
          "[train]") {
  Bench bench = trained({2, 8}, 5, 2);
  REQUIRE(bench.recorder.steps.size() == 2);
  CHECK(bench.recorder.steps[0].micro_batches == 3);
  CHECK(bench.recorder.steps[1].samples_total == 10);
  CHECK(total_steps(bench.options, 5) == 2);
}

TEST_CASE("trainer: the first limit reached ends the run, and the summary counts what was done", "[train]") {
  Bench bench(10, 4);
  bench.options.micro_batch_size = 4;
  bench.options.epochs = 100;
  bench.options.max_steps = 5;
  const RunSummary summary = bench.train();
  CHECK(summary.reason == StopReason::kMaxSteps);
  CHECK(summary.steps == 5);
  CHECK(summary.samples == 18);  // 4 + 4 + 2 + 4 + 4
  CHECK(summary.epochs == Approx(1.8));
  // After step 3, the end of the epoch, and at the end of the run.
  REQUIRE(bench.recorder.evals.size() == 2);
  CHECK(bench.recorder.evals[0].step == 3);
  CHECK(bench.recorder.evals[1].step == 5);
  CHECK(total_steps(bench.options, 10) == 5);
  bench.options.max_steps.reset();
  CHECK(total_steps(bench.options, 10) == 300);
}

TEST_CASE("trainer: max_time alone ends a run", "[train]") {
  Bench bench(10);
  bench.options.max_seconds = 0.05;
  const RunSummary summary = bench.train();
  CHECK(summary.reason == StopReason::kMaxTime);
  CHECK(summary.steps > 0);
  CHECK_FALSE(total_steps(bench.options, 10).has_value());
}

// With autocast a weight that an evaluation has cast, without a graph, must not serve the next forward pass.
TEST_CASE("trainer: validating more often changes nothing that is learned, under autocast either",
          "[train]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16, at::kHalf);
  CAPTURE(type);
  Bench often(12, 5);
  Bench never(12);
  const std::uint64_t start = hash_tensors(never.model->named_parameters());
  for (Bench* bench : {&often, &never}) {
    if (type != at::kFloat) bench->options.update.precision.autocast = type;
    bench->options.micro_batch_size = 3;
    bench->options.epochs = 3;
    bench->options.validate_every = {1, recipe::Interval::Unit::kSteps};
    bench->train();
  }
  CHECK(often.recorder.evals.size() == 12);
  CHECK(hash_tensors(often.model->named_parameters()) == hash_tensors(never.model->named_parameters()));
  CHECK(hash_tensors(never.model->named_parameters()) != start);
}

TEST_CASE("trainer: averages change nothing that is learned, and are evaluated beside the weights",
          "[train]") {
  Bench averaged(12, 5), plain(12, 5);
  for (Bench* bench : {&averaged, &plain}) {
    bench->options.micro_batch_size = 3;
    bench->options.epochs = 3;
    bench->options.validate_every = {1, recipe::Interval::Unit::kSteps};
  }
  averaged.average({.decay = 0.9});
  averaged.train();
  plain.train();
  CHECK(hash_tensors(averaged.model->named_parameters()) == hash_tensors(plain.model->named_parameters()));
  REQUIRE(averaged.recorder.evals.size() == 12);
  double best = -1;
  for (std::size_t i = 0; i < 12; ++i) {
    const EvalRecord &with = averaged.recorder.evals[i], &without = plain.recorder.evals[i];
    CHECK(with.loss == without.loss);
    CHECK(with.metrics[0].value == without.metrics[0].value);
    CHECK_FALSE(without.ema_loss);
    REQUIRE(with.ema_loss);
    REQUIRE(with.metrics.size() == 2);
    CHECK(with.metrics[1].name == "ema_accuracy");
    CHECK(with.best_metric == "ema_accuracy");
    best = std::max(best, with.metrics[1].value);
    CHECK(with.best == best);
  }
  // The last numbers are those of a model that holds the averages.
  const nn::NamedTensors averages = averaged.ema->averaged(averaged.model->named_parameters());
  const nn::NamedTensors parameters = plain.model->named_parameters();
  const c10::AutoGradMode no_grad(false);
  for (std::size_t i = 0; i < averages.size(); ++i)
    at::Tensor(parameters[i].second).copy_(averages[i].second);
  const StopFlag stop;
  const auto of_averages = evaluate(*plain.model, *plain.data.validation, *plain.objective, {}, 1, stop);
  CHECK(of_averages->loss == Approx(*averaged.recorder.evals.back().ema_loss).epsilon(1e-6));
}

TEST_CASE("trainer: averages tick once per update, whatever the accumulation", "[train]") {
  Bench whole(16), parts(16);
  whole.options.micro_batch_size = 8;
  parts.options.micro_batch_size = 2;
  parts.options.gradient_accumulation_steps = 4;
  for (Bench* bench : {&whole, &parts}) {
    bench->options.epochs = 3;
    bench->average({.decay = 0.5, .warmup = true});
    bench->train();
  }
  for (std::size_t i = 0; i < whole.ema->averages().size(); ++i) {
    const at::Tensor expected = whole.ema->averages()[i].second;
    CHECK(parts.ema->averages()[i].second.sub(expected).abs().max().item<double>() < 1e-6);
    CHECK(expected.sub(whole.model->named_parameters()[i].second).abs().max().item<double>() > 1e-4);
  }
}

TEST_CASE("trainer: a validation can be due by time", "[train]") {
  Bench bench(8, 3);
  bench.options.max_steps = 20;
  bench.options.validate_every = {1e-9, recipe::Interval::Unit::kSeconds};
  bench.train();
  CHECK(bench.recorder.evals.size() == 20);
}

TEST_CASE("trainer: the best validation is kept with its step", "[train]") {
  Bench bench(12, 5);
  bench.options.micro_batch_size = 3;
  bench.options.epochs = 4;
  bench.train();
  double best = -1;
  for (const EvalRecord& record : bench.recorder.evals) {
    best = std::max(best, record.metrics[0].value);
    CHECK(record.best == best);
    CHECK(record.best_metric == "accuracy");
    CHECK(record.samples == 5);
  }
}

TEST_CASE("trainer: the schedule ticks once per update, whatever the accumulation", "[train]") {
  Bench bench(8);
  bench.options.micro_batch_size = 1;
  bench.options.gradient_accumulation_steps = 2;
  bench.options.epochs = 1;
  bench.schedule = [](std::int64_t applied) { return 1.0 / static_cast<double>(1 + applied); };
  bench.train();
  REQUIRE(bench.recorder.steps.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(bench.recorder.steps[i].learning_rate == Approx(0.2 / static_cast<double>(1 + i)));
  }
}

TEST_CASE("trainer: clipping limits the gradient's norm, and the norm shown is that before it", "[train]") {
  Bench clipped(4), plain(4);
  for (Bench* bench : {&clipped, &plain}) {
    bench->options.micro_batch_size = 4;
    bench->options.max_steps = 1;
  }
  const at::Tensor start = plain.model->named_parameters()[0].second.detach().clone();
  clipped.options.update.max_grad_norm = 0.01;
  plain.train();
  clipped.train();
  const double norm = plain.recorder.steps[0].grad_norm;
  CHECK(clipped.recorder.steps[0].grad_norm == norm);
  REQUIRE(norm > 0.01);
  const at::Tensor full = plain.model->named_parameters()[0].second.sub(start);
  const at::Tensor limited = clipped.model->named_parameters()[0].second.sub(start);
  CHECK(limited.sub(full.mul(0.01 / norm)).abs().max().item<double>() < 1e-6);
}

TEST_CASE("trainer: the norm and clipping are over what is trained", "[train]") {
  Bench whole(4), frozen(4);
  optim::freeze(frozen.model->named_parameters(), {"layers.0.*"});
  const nn::NamedTensors trained = optim::trained(frozen.model->named_parameters());
  frozen.optimizer =
      bound(optim::all_optimizers(), "sgd", {{"lr", "0.2"}, {"momentum", "0"}}).build({trained, 1});
  const at::Tensor before = trained[0].second.detach().clone();
  for (Bench* bench : {&whole, &frozen}) {
    bench->options.micro_batch_size = 4;
    bench->options.max_steps = 1;
  }
  frozen.options.update.max_grad_norm = 1e-3;
  whole.train();
  frozen.train();
  double square = 0;
  for (const auto& [name, parameter] : whole.model->named_parameters()) {
    if (name.rfind("layers.0.", 0) != 0) square += parameter.grad().square().sum().item<double>();
  }
  const double norm = frozen.recorder.steps[0].grad_norm;
  CHECK(norm == Approx(std::sqrt(square)));
  CHECK(norm < whole.recorder.steps[0].grad_norm);
  const at::Tensor moved = trained[0].second.detach().sub(before);
  const at::Tensor gradient = whole.model->named_parameters()[2].second.grad();
  CHECK(moved.add(gradient.mul(0.2 * 1e-3 / norm)).abs().max().item<double>() < 1e-7);
}

// 12 samples one by one, of which 4 have a target.
TEST_CASE("trainer: a window without targets moves the data on, and nothing else", "[train]") {
  Bench bench(12);
  bench.data.train = std::make_unique<SparsePoints>(12);
  bench.options.epochs = 2;
  bench.options.micro_batch_size = 1;
  bench.options.update.max_skipped = 1;  // such windows are no failures
  bench.schedule = [](std::int64_t applied) { return 1.0 / static_cast<double>(1 + applied); };
  HashingRecorder recorder(bench);
  const RunSummary summary = train_with(bench, recorder);
  CHECK(summary.reason == StopReason::kEpochs);
  CHECK(summary.steps == 8);
  CHECK(summary.skipped == 16);
  CHECK(summary.skipped_without_targets == 16);
  CHECK(summary.samples == 24);
  CHECK(std::isfinite(summary.final_loss.value()));
  REQUIRE(recorder.steps.size() == 24);
  std::int64_t applied = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    const StepRecord& record = recorder.steps[i];
    CAPTURE(i);
    CHECK(record.window == static_cast<std::int64_t>(i) + 1);
    CHECK(record.samples_total == record.window);
    CHECK(record.learning_rate == Approx(0.2 / static_cast<double>(1 + applied)));
    CHECK(skip_reason(record) ==
          (record.targets == 0 ? std::optional(SkipReason::kNoTargets) : std::nullopt));
    if (!record.skipped) ++applied;
    CHECK(record.step == applied);
    if (i > 0) CHECK((recorder.hashes[i] == recorder.hashes[i - 1]) == record.skipped);
  }
  REQUIRE(recorder.notices.size() == 1);
  CHECK(recorder.notices[0] ==
        "skipped 16 of 24 windows, which had no target: there was nothing to learn from them");
}

TEST_CASE("trainer: a window without targets leaves running statistics and their counter alone", "[train]") {
  Bench bench(12);
  bench.data.train = std::make_unique<SparsePoints>(12);
  bench.model = bound(models::all_models(), "convnet", {{"stages", "1"}, {"width", "3"}})
                    .build({{2, 1, 1}, 2, nn::init_on_cpu(5)});
  bench.flat_buffers = bench.model->to(at::kCPU, true);
  bench.optimizer =
      bound(optim::all_optimizers(), "sgd", {{"lr", "0.2"}}).build({bench.model->named_parameters(), 1});
  bench.options.epochs = 3;
  bench.options.micro_batch_size = 2;
  HashingRecorder recorder(bench);
  const RunSummary summary = train_with(bench, recorder);
  CHECK(summary.skipped_without_targets > 0);
  for (std::size_t i = 1; i < recorder.steps.size(); ++i) {
    if (recorder.steps[i].targets == 0) CHECK(recorder.hashes[i] == recorder.hashes[i - 1]);
  }
  for (const auto& [name, value] : bench.model->named_buffers()) {
    if (value.scalar_type() == at::kLong) CHECK(value.item<std::int64_t>() == summary.steps);
  }
}

TEST_CASE(
    "trainer: windows without targets neither count among those that are not finite nor break their row",
    "[train]") {
  Bench bench(30);
  bench.data.train = std::make_unique<BadPoints>(30);
  bench.options.epochs = 1;
  bench.options.micro_batch_size = 1;
  bench.options.update.max_skipped = 5;
  HashingRecorder recorder(bench);
  const RunSummary summary = train_with(bench, recorder);
  CHECK(summary.reason == StopReason::kNotFinite);
  CHECK(summary.skipped - summary.skipped_without_targets == 5);
  CHECK(summary.skipped_without_targets > 0);
  CHECK_THAT(summary.problem, ContainsSubstring("the last of 5 in a row"));
}

TEST_CASE("trainer: a run whose last windows have no targets is validated at its end", "[train]") {
  Bench bench(6, 5);
  bench.data.train = std::make_unique<SparsePoints>(6);
  bench.options.epochs = 1;
  bench.options.max_steps = 100;
  bench.options.micro_batch_size = 1;
  HashingRecorder recorder(bench);
  const RunSummary summary = train_with(bench, recorder);
  CHECK(summary.steps == 2);
  CHECK(summary.epochs == 1);
  REQUIRE(recorder.evals.size() == 1);
  CHECK(recorder.evals[0].epoch == 1);
}

// Sample 3 of 12 is not finite: 11 updates of 12 windows. The rate is 0 from update 1025 on.
TEST_CASE("trainer: each of many updates has its own learning rate, skipped windows or not", "[train]") {
  Bench bench(12);
  bench.data.train = std::make_unique<OneBadPoint>(12);
  bench.optimizer = bound(optim::all_optimizers(), "sgd", {{"lr", "0.01"}, {"momentum", "0"}})
                        .build({bench.model->named_parameters(), 1});
  bench.options.max_steps = 1100;
  bench.options.micro_batch_size = 1;
  bench.options.log_every = 5000;
  bench.schedule = [](std::int64_t applied) { return applied < 1024 ? 1.0 : 0.0; };
  HashingRecorder recorder(bench);
  const RunSummary summary = train_with(bench, recorder);
  CHECK(summary.steps == 1100);
  CHECK((summary.skipped == 99 ||
         summary.skipped == 100));  // one in each of 100 epochs, if it came in the last
  std::uint64_t before_last_change = 0;
  for (std::size_t i = 0; i < recorder.steps.size(); ++i) {
    const std::int64_t step = recorder.steps[i].step;
    if (step == 1023) before_last_change = recorder.hashes[i][0];
    if (step >= 1024) CHECK(recorder.hashes[i][0] == recorder.hashes.back()[0]);
  }
  CHECK(before_last_change != recorder.hashes.back()[0]);
}

TEST_CASE("trainer: a signal ends the run after the step in work", "[train]") {
  Bench bench(10);
  const StopFlag stop;
  std::raise(SIGTERM);
  const RunSummary summary = train(
      bench.options,
      {*bench.model, bench.flat_buffers, bench.data, *bench.objective, *bench.optimizer, bench.schedule},
      bench.recorder, stop, nullptr);
  CHECK(summary.reason == StopReason::kTerminated);
  CHECK(summary.steps == 1);
}

}  // namespace gputrain::train
