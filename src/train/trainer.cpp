#include "train/trainer.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/process.h"
#include "base/text.h"
#include "data/order.h"
#include "device/generators.h"
#include "device/memory.h"
#include "device/stream.h"
#include "nn/module.h"
#include "profile/take.h"
#include "train/evaluate.h"
#include "train/leak_watch.h"
#include "train/nonfinite_search.h"
#include "train/stopwatch.h"
#include "train/throughput.h"
#include "train/update.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <deque>
#include <new>
#include <utility>

namespace gputrain::train {
namespace {

// How far the host may be ahead of the device: enough that it never waits between two log lines of short
// steps, little enough to stop soon.
constexpr double kSecondsAhead = 1;
constexpr std::size_t kLeastWindowsAhead = 2;
constexpr std::size_t kMostWindowsAhead = 64;

// Windows before passes are captured: cuDNN and the allocator have settled by then.
constexpr std::int64_t kWindowsBeforeCapture = 3;

// Windows before memory is accounted for, in a run that has as many: libraries and the allocator have
// settled. No later than graphs, whose passes cannot be looked into.
constexpr std::int64_t kWindowsBeforeLedger = kWindowsBeforeCapture - 1;

// Passes of the first window that are looked into for the text of an out-of-memory error: most runs that lack
// memory do so there, and from the second on there are gradients.
constexpr std::size_t kPassesWatched = 2;

// Graphs pay where the host takes more than this of the time that the device takes.
constexpr double kLaunchBound = 0.5;

class Trainer {
 public:
  Trainer(const TrainOptions& options, const TrainParts& parts, Sink& sink, const StopFlag& stop,
          Trace* trace);

  RunSummary run();

 private:
  // A window whose values are still on their way from the device.
  struct Pending {
    StepRecord record;
    data::Window window;
    device::PendingScalars values;
    device::Mark begin;
    device::Mark end;

    bool is_done() const { return (!was_computed(record) || values.ready()) && end.reached(); }
  };

  std::optional<StopReason> reached_limit(const data::Window& last) const;
  void train_window(const data::Window& window);
  std::int64_t count_targets(const data::Window& window) const;
  void pass_over(const data::Window& window);
  void update_with(const data::Window& window);
  at::Tensor run_window(const data::Window& window);
  bool is_full(const data::Window& window) const;
  bool ledger_is_due(const data::Window& window) const;
  void finish_ledger();
  void report_missing_ledger();
  std::string what_is_live() const;
  Error out_of_memory(const char* where, const std::exception& error,
                      std::vector<std::string> remedies) const;
  std::int64_t possible_steps() const;
  std::int64_t computed_windows() const;
  const LearningRates& learning_rates();
  double learning_rate(std::int64_t applied) const;
  void run_micro_batch(const data::Window& window, std::size_t micro);
  void seed_micro_batch(const data::Window& window, std::size_t micro) const;
  StepRecord describe_window(const data::Window& window) const;
  void dispatch(StepRecord record, const data::Window& window, device::PendingScalars values,
                device::Mark begin);
  bool is_log_step(std::int64_t step) const;
  std::size_t windows_ahead() const;
  bool graphs_are_open() const;
  void decide_graphs(const data::Window& window);
  std::string capture_passes(nn::Batch like);
  void drop_graphs(const char* reason);
  void deliver(std::size_t leave_in_flight);
  void deliver_one(Pending pending);
  void conclude(Pending& pending);
  bool take_outcome(Pending& pending);
  void skip(Pending& pending, bool ends);
  void report_windows_without_targets();
  std::string where_it_began(const data::Window& window);
  std::string run_with_checks(const data::Window& window);
  void forget_passes(std::int64_t micro_batches);
  bool validation_is_due() const;
  std::int64_t last_eval_step() const { return summary_.last_eval ? summary_.last_eval->step : -1; }
  void validate();
  std::optional<EvalRecord> evaluate_or_explain();
  std::optional<EvalRecord> evaluate_all();
  std::optional<double> eta_seconds() const;
  device::MemoryReading read_memory(bool with_driver);
  void empty_cache(recipe::EmptyCache occasion);
  void keep_limit(const device::MemoryReading& reading);
  void tell(const std::optional<std::string>& notice);
  std::int64_t within_limit(std::int64_t free);

  const TrainOptions& options_;
  const TrainParts& parts_;
  Sink& sink_;
  const StopFlag& stop_;
  Trace* trace_;

  data::WindowPlan plan_;
  Update update_;
  device::AsyncScalars scalars_;
  device::StepClock clock_;
  device::MemoryMeter meter_;
  LeakWatch leaks_;
  const std::optional<std::int64_t> total_steps_;
  const std::optional<std::int64_t> validation_interval_;  // in windows or steps; absent: by time

  Stopwatch since_start_;
  Stopwatch since_validation_;
  Stopwatch pace_;  // since the last warm-up step, pauses for validation included
  std::int64_t windows_ = 0;
  std::int64_t targets_ = 0;  // of the window in work
  double data_wait_ = 0;      // of the window in work
  device::Mark window_begin_;
  std::deque<Pending> pending_;
  std::optional<EvalRecord> best_;
  std::optional<EarlyStopping> early_stopping_;
  std::int64_t validated_at_ = -1;  // windows_ of the last validation
  std::int64_t skipped_in_a_row_ = 0;
  LearningRates rates_;        // those handed over last
  double window_seconds_ = 0;  // of the device for the last window delivered
  double host_seconds_ = 0;    // of the host for its first micro-batch, without waiting for data
  bool graphs_decided_ = false;
  profile::LedgerTaker account_;
  bool ledger_is_open_;         // still to be taken
  bool in_ledger_ = false;      // this window
  std::int64_t looked_at_ = 1;  // window that account_ has seen last
  Throughput throughput_;
  std::optional<StopReason> stopped_;
  RunSummary summary_;
};

Trainer::Trainer(const TrainOptions& options, const TrainParts& parts, Sink& sink, const StopFlag& stop,
                 Trace* trace)
    : options_(options),
      parts_(parts),
      sink_(sink),
      stop_(stop),
      trace_(trace),
      plan_(parts.data.train->size(), options.micro_batch_size, options.gradient_accumulation_steps,
            options.seed),
      update_(parts.model, parts.flat_buffers, parts.objective, parts.optimizer, options.update, parts.ema),
      scalars_(options.device),
      clock_(options.device),
      meter_(options.device),
      total_steps_(train::total_steps(options, parts.data.train->size())),
      validation_interval_(optim::steps_of(options.validate_every, plan_.steps_per_epoch())),
      account_(options.device, {parts.model, parts.optimizer, parts.ema, parts.data}, meter_,
               [this] { return update_.held(); }),
      ledger_is_open_(options.memory_ledger) {
  if (options.early_stopping) early_stopping_.emplace(*options.early_stopping);
  update_.watch_forward(
      [this](const at::Tensor& output, const at::Tensor& loss) { account_.end_forward(output, loss); });
}

RunSummary Trainer::run() {
  summary_.startup_seconds = seconds_since_process_start();
  since_start_.restart();
  since_validation_.restart();
  meter_.reset_peaks();
  if (ledger_is_open_) account_.start();
  parts_.model.train();
  window_begin_ = clock_.record();
  while (!stopped_) {
    const data::Window window = plan_.next();
    train_window(window);
    if (!reached_limit(window) && !validation_is_due()) continue;
    deliver(0);
    if (stopped_) break;
    // Of the windows in flight some may have been skipped, which is known only now.
    if ((reached_limit(window) || validation_is_due()) && !stop_) validate();
    stopped_ = reached_limit(window);
  }
  if (stopped_ == StopReason::kEarlyStopped) sink_.notice("stopping early: " + early_stopping_->reason());
  report_windows_without_targets();
  report_missing_ledger();
  summary_.reason = *stopped_;
  summary_.samples_per_second = throughput_.rate();
  return summary_;
}

std::optional<StopReason> Trainer::reached_limit(const data::Window& last) const {
  if (stop_) return stop_.signal() == SIGINT ? StopReason::kInterrupted : StopReason::kTerminated;
  if (options_.max_steps && possible_steps() >= *options_.max_steps) return StopReason::kMaxSteps;
  if (options_.epochs && last.last_of_epoch && last.epoch + 1 >= *options_.epochs) return StopReason::kEpochs;
  if (options_.max_seconds && since_start_.seconds() >= *options_.max_seconds) return StopReason::kMaxTime;
  if (early_stopping_ && early_stopping_->is_due()) return StopReason::kEarlyStopped;
  return std::nullopt;
}

void Trainer::train_window(const data::Window& window) {
  ++windows_;
  data_wait_ = 0;
  targets_ = count_targets(window);
  if (targets_ == 0) {
    pass_over(window);
  } else {
    update_with(window);
    empty_cache(recipe::EmptyCache::kEveryStep);
  }
  // A trace shows the weights after this very window.
  deliver(is_log_step(possible_steps()) || trace_ || graphs_are_open() ? 0 : windows_ahead());
  const bool can_decide = targets_ > 0 && computed_windows() >= kWindowsBeforeCapture && !stopped_;
  if (can_decide && graphs_are_open() && !ledger_is_open_) decide_graphs(window);
  if (fault_at(FaultKind::kStop, {.step = windows_})) std::raise(SIGTERM);
}

std::int64_t Trainer::count_targets(const data::Window& window) const {
  std::int64_t count = 0;
  for (const auto& ids : window.micro_batches) count += parts_.data.train->targets(ids);
  return count;
}

// A window with nothing to learn from: the data moves on, and nothing else. A mean over no target would be
// 0/0.
void Trainer::pass_over(const data::Window& window) {
  StepRecord record = describe_window(window);
  record.skipped = true;
  dispatch(std::move(record), window, {}, window_begin_);
}

void Trainer::update_with(const data::Window& window) {
  in_ledger_ = ledger_is_due(window);
  try {
    if (in_ledger_) {
      read_memory(/*with_driver=*/true);  // peaks count from here
      account_.begin(windows_, static_cast<std::int64_t>(window.micro_batches.size()),
                     /*warm=*/computed_windows() > kWindowsBeforeLedger);
    }
    const at::Tensor values = run_window(window);
    if (in_ledger_) finish_ledger();
    sleep_if_asked({.step = windows_, .phase = "step"});
    dispatch(describe_window(window), window, scalars_.copy(values), window_begin_);
  } catch (const std::exception& error) {
    if (!device::is_out_of_memory(error)) throw;
    throw out_of_memory("step ", error, options_.memory_savers);
  }
}

Error Trainer::out_of_memory(const char* where, const std::exception& error,
                             std::vector<std::string> remedies) const {
  if (update_.has_graphs()) remedies.emplace_back("cuda.graphs: false");
  const auto limit =
      parts_.memory_limit != nullptr ? std::optional(parts_.memory_limit->bytes()) : std::nullopt;
  return {ExitCode::kOutOfMemory,
          concat(where, windows_, ": ", device::describe_out_of_memory(error, options_.device, limit),
                 ". Less is needed with ",
                 remedies.empty() ? "a smaller model or smaller samples" : join(remedies, "; ", "; or "),
                 what_is_live())};
}

at::Tensor Trainer::run_window(const data::Window& window) {
  update_.begin(targets_, window.micro_batches.size());
  for (std::size_t micro = 0; micro < window.micro_batches.size(); ++micro) {
    const Stopwatch host;
    const double waited = data_wait_;
    run_micro_batch(window, micro);
    // The first of a window alone: later ones may wait until CUDA's queue of launches has room.
    if (micro == 0) host_seconds_ = host.seconds() - (data_wait_ - waited);
  }
  if (fault_at(FaultKind::kOutOfMemory, {.step = windows_, .phase = "optimizer"})) throw std::bad_alloc();
  return update_.finish(learning_rates());
}

// Updates applied so far, if none of those in flight is skipped.
std::int64_t Trainer::possible_steps() const {
  return summary_.steps + std::count_if(pending_.begin(), pending_.end(),
                                        [](const Pending& pending) { return was_computed(pending.record); });
}

// So far, if none is in flight.
std::int64_t Trainer::computed_windows() const {
  return windows_ - summary_.skipped_without_targets;
}

double Trainer::learning_rate(std::int64_t applied) const {
  return parts_.optimizer.peak_lr() * parts_.schedule(applied);
}

// Many at once, so that they are seldom sent to the device.
const LearningRates& Trainer::learning_rates() {
  const auto end = rates_.applied + static_cast<std::int64_t>(rates_.rates.size());
  if (possible_steps() >= end) {
    rates_ = {summary_.steps, {}};
    for (std::size_t i = 0; i < kMostRates; ++i) {
      rates_.rates.push_back(learning_rate(summary_.steps + static_cast<std::int64_t>(i)));
    }
  }
  return rates_;
}

void Trainer::run_micro_batch(const data::Window& window, std::size_t micro) {
  const auto micro_number = static_cast<std::int64_t>(micro);
  Stopwatch waiting;
  nn::Batch batch = parts_.data.train->batch(window.micro_batches[micro]);
  data_wait_ += waiting.seconds();
  if (trace_) trace_->micro_batch(window, windows_, micro, batch);
  if (fault_at(FaultKind::kNan, {.step = windows_, .micro = micro_number})) update_.poison_next();
  for (const char* phase : {"forward", "backward"}) {
    if (fault_at(FaultKind::kOutOfMemory, {.step = windows_, .micro = micro_number, .phase = phase})) {
      throw std::bad_alloc();
    }
  }
  seed_micro_batch(window, micro);
  const bool is_last = micro + 1 == window.micro_batches.size();
  const auto pass = [&] { update_.accumulate(std::move(batch)); };
  if (in_ledger_) {
    looked_at_ = windows_;
    account_.around(batch, is_last, pass);
  } else if (computed_windows() == 1 && micro < kPassesWatched) {
    looked_at_ = windows_;
    account_.watch(batch, pass);
  } else {
    pass();
  }
}

bool Trainer::is_full(const data::Window& window) const {
  const std::int64_t most = options_.micro_batch_size * options_.gradient_accumulation_steps;
  return window.samples() == std::min(most, parts_.data.train->size());
}

bool Trainer::ledger_is_due(const data::Window& window) const {
  if (!ledger_is_open_ || !is_full(window)) return false;
  const std::int64_t before = computed_windows() - 1;
  return before >= std::min(kWindowsBeforeLedger, total_steps_.value_or(kWindowsBeforeLedger + 1) - 1);
}

void Trainer::finish_ledger() {
  sink_.ledger(account_.end());
  in_ledger_ = false;
  ledger_is_open_ = false;
}

// For the text of an error.
std::string Trainer::what_is_live() const {
  return concat("\nin window ", looked_at_, " ", profile::describe_live(account_.live()));
}

void Trainer::report_missing_ledger() {
  if (ledger_is_open_) sink_.notice("memory.ledger: not measured, since the run ended before a full window");
}

// Dropout's masks depend on the position in the data alone.
void Trainer::seed_micro_batch(const data::Window& window, std::size_t micro) const {
  const std::int64_t position =
      window.first_position + static_cast<std::int64_t>(micro) * options_.micro_batch_size;
  device::seed_generators(options_.device, options_.seed, static_cast<std::uint64_t>(position));
}

StepRecord Trainer::describe_window(const data::Window& window) const {
  StepRecord record;
  record.window = windows_;
  record.samples = window.samples();
  record.samples_total = window.first_position + record.samples;
  record.epoch = static_cast<double>(record.samples_total) / static_cast<double>(parts_.data.train->size());
  record.micro_batches = static_cast<std::int64_t>(window.micro_batches.size());
  record.targets = targets_;
  record.data_wait_seconds = data_wait_;
  record.warmup = windows_ <= options_.warmup_steps;
  return record;
}

// values: none where nothing was computed.
void Trainer::dispatch(StepRecord record, const data::Window& window, device::PendingScalars values,
                       device::Mark begin) {
  window_begin_ = clock_.record();
  if (values.valid() && summary_.first_step_seconds == 0) {
    window_begin_.wait();
    summary_.first_step_seconds = seconds_since_process_start();
  }
  if (windows_ <= options_.warmup_steps) pace_.restart();
  record.memory = read_memory(is_log_step(possible_steps() + 1));
  if (values.valid() && !record.warmup && record.memory.allocated) {
    tell(leaks_.after_window(record.samples, *record.memory.allocated));
  }
  record.eta_seconds = eta_seconds();
  pending_.push_back({std::move(record), window, std::move(values), std::move(begin), window_begin_});
}

bool Trainer::is_log_step(std::int64_t step) const {
  return step == 1 || step % options_.log_every == 0 || step == total_steps_;
}

std::size_t Trainer::windows_ahead() const {
  if (window_seconds_ <= 0) return kLeastWindowsAhead;
  const double windows = std::min(kSecondsAhead / window_seconds_, static_cast<double>(kMostWindowsAhead));
  return std::max(static_cast<std::size_t>(windows), kLeastWindowsAhead);
}

// Whether it is still to be decided if passes are captured. Until then each window begins on an idle device,
// so that what the host takes for it can be measured.
bool Trainer::graphs_are_open() const {
  return options_.graphs != Graphs::kOff && !graphs_decided_;
}

void Trainer::decide_graphs(const data::Window& window) {
  const auto& ids = window.micro_batches.front();
  const bool is_full = static_cast<std::int64_t>(ids.size()) == options_.micro_batch_size;
  if (!is_full && parts_.data.train->size() >= options_.micro_batch_size) return;  // a full one will come
  graphs_decided_ = true;
  if (!is_full) {
    if (options_.graphs == Graphs::kOn) sink_.notice("cuda.graphs: off, since no micro-batch is ever full");
    return;
  }
  const double device_seconds = window_seconds_ / static_cast<double>(window.micro_batches.size());
  if (options_.graphs == Graphs::kAuto && host_seconds_ < kLaunchBound * device_seconds) return;
  read_memory(/*with_driver=*/true);
  const std::string problem = capture_passes(parts_.data.train->batch(ids));
  if (problem.empty()) {
    meter_.count_graphs(update_.graph_bytes());
    keep_limit(meter_.read());
    sink_.notice("cuda.graphs: from here on the passes are replayed as CUDA graphs");
  } else if (options_.graphs == Graphs::kOn) {
    throw Error(ExitCode::kUsage, concat("cuda.graphs is true, but ", problem, "; expected auto or false"));
  } else {
    sink_.notice("cuda.graphs: off, since " + problem);
  }
  window_begin_ = clock_.record();
}

// Why passes cannot be replayed as graphs; empty: from now on they are.
std::string Trainer::capture_passes(nn::Batch like) {
  try {
    update_.capture(std::move(like), static_cast<std::size_t>(options_.gradient_accumulation_steps));
  } catch (const std::exception& error) {
    const bool lacks_memory = device::is_out_of_memory(error);
    if (lacks_memory && options_.graphs == Graphs::kOn)
      throw out_of_memory("capture after step ", error, options_.memory_savers);
    return concat("the passes of this model cannot be captured: ", device::plain_text(error));
  }
  // Short batches and validation are computed one by one, beside the memory that the graphs keep.
  const std::optional<std::int64_t> free = device::release_cached_memory(options_.device);
  if (options_.graphs == Graphs::kOn || !free || within_limit(*free) >= update_.graph_bytes()) return "";
  update_.drop_graphs();
  device::release_cached_memory(options_.device);
  return "the device's memory would not hold passes that are made one by one beside them";
}

void Trainer::deliver(std::size_t leave_in_flight) {
  while (!pending_.empty() && !stopped_ &&
         (pending_.size() > leave_in_flight || pending_.front().is_done())) {
    Pending oldest = std::move(pending_.front());
    pending_.pop_front();
    deliver_one(std::move(oldest));
  }
}

void Trainer::deliver_one(Pending pending) {
  StepRecord& record = pending.record;
  record.seconds = clock_.seconds_between(pending.begin, pending.end);
  record.learning_rate = learning_rate(summary_.steps);
  if (was_computed(pending.record)) {
    conclude(pending);
  } else {
    summary_.skipped += 1;
    summary_.skipped_without_targets += 1;
  }
  record.step = summary_.steps;
  summary_.samples = record.samples_total;
  summary_.epochs = record.epoch;
  summary_.training_seconds += record.seconds;
  summary_.data_wait_seconds += record.data_wait_seconds;
  if (record.warmup) summary_.warmup_seconds += record.seconds;
  throughput_.add(record);
  if (trace_) {
    trace_->update(record, parts_.model.named_parameters(), parts_.model.named_buffers(), options_.device);
  }
  sink_.step(record);
}

void Trainer::conclude(Pending& pending) {
  window_seconds_ = pending.record.seconds;
  const bool ends = take_outcome(pending);
  if (pending.record.skipped) {
    skip(pending, ends);
    return;
  }
  skipped_in_a_row_ = 0;
  summary_.steps += 1;
  summary_.final_loss = pending.record.loss;
}

// Whether nothing changes any more on the device.
bool Trainer::take_outcome(Pending& pending) {
  StepRecord& record = pending.record;
  const std::vector<double> values = pending.values.wait();
  const std::size_t losses = values.size() - kOutcomes;
  for (std::size_t i = 0; i < losses; ++i) record.loss += values[i];
  const auto outcome = [&](Outcome which) { return values[losses + static_cast<std::size_t>(which)]; };
  record.grad_norm = outcome(Outcome::kGradNorm);
  record.skipped = outcome(Outcome::kApplied) == 0;
  if (options_.update.loss_scale) record.loss_scale = outcome(Outcome::kLossScale);
  return outcome(Outcome::kStopped) != 0;
}

void Trainer::skip(Pending& pending, bool ends) {
  const StepRecord& record = pending.record;
  forget_passes(record.micro_batches);
  summary_.skipped += 1;
  skipped_in_a_row_ += 1;
  // A loss scale finds its value by overflowing; else the first of a row is worth a look.
  const bool finds_scale = options_.update.loss_scale && !options_.update.loss_scale->fixed;
  if (!ends && (finds_scale || skipped_in_a_row_ > 1)) return;
  const std::string scale = record.loss_scale ? concat(", loss scale ", shortest(*record.loss_scale)) : "";
  const std::string found =
      concat("window ", record.window, " (samples ", record.samples_total - record.samples, " to ",
             record.samples_total - 1, " of the run): loss ", shortest(record.loss),
             ", norm of the gradient ", shortest(record.grad_norm), scale, where_it_began(pending.window));
  if (!ends) {
    sink_.notice(concat("skipped ", found));
    return;
  }
  // What came after it was undone on the device, too.
  for (const Pending& later : pending_) {
    if (was_computed(later.record)) forget_passes(later.record.micro_batches);
  }
  const std::string row =
      skipped_in_a_row_ > 1 ? concat(", the last of ", skipped_in_a_row_, " in a row") : "";
  summary_.problem = concat(found, row, "; the weights are those after step ", summary_.steps);
  stopped_ = StopReason::kNotFinite;
}

void Trainer::report_windows_without_targets() {
  if (summary_.skipped_without_targets == 0) return;
  sink_.notice(concat("skipped ", summary_.skipped_without_targets, " of ", summary_.steps + summary_.skipped,
                      " windows, which had no target: there was nothing to learn from them"));
}

// Where values that are not finite come from. The search never ends a run that could go on.
std::string Trainer::where_it_began(const data::Window& window) {
  try {
    return run_with_checks(window);
  } catch (const std::exception& error) {
    if (!device::is_out_of_memory(error)) throw;
    return "; there is not enough memory to run the window again and see where it began";
  }
}

std::string Trainer::run_with_checks(const data::Window& window) {
  NonFiniteSearch search(parts_.model, parts_.objective, options_.update.precision);
  for (std::size_t micro = 0; micro < window.micro_batches.size(); ++micro) {
    const nn::Batch batch = parts_.data.train->batch(window.micro_batches[micro]);
    seed_micro_batch(window, micro);
    const std::string found = search.look_at(batch);
    if (!found.empty()) return concat("; first in ", found, " (micro-batch ", micro, ")");
  }
  return "; not seen again when the window was run a second time";
}

// Takes forward passes whose effect was undone on the device out of the host's counters (BatchNorm2d's), too.
void Trainer::forget_passes(std::int64_t micro_batches) {
  parts_.model.count_passes(-micro_batches);
}

bool Trainer::validation_is_due() const {
  if (!parts_.data.validation || validated_at_ == windows_) return false;
  const bool by_data = options_.validate_every.unit == recipe::Interval::Unit::kEpochs;
  const std::int64_t done = by_data ? windows_ : possible_steps();
  // A window that was skipped leaves the step where it was validated.
  if (!by_data && last_eval_step() == done) return false;
  if (validation_interval_) return done > 0 && done % *validation_interval_ == 0;
  return since_validation_.seconds() >= options_.validate_every.count;
}

std::optional<EvalRecord> Trainer::evaluate_or_explain() {
  bool may_release = options_.device.is_cuda() && options_.empty_cache != recipe::EmptyCache::kNever;
  while (true) {
    try {
      if (fault_at(FaultKind::kOutOfMemory, {.step = windows_, .phase = "validation"}))
        throw std::bad_alloc();
      return evaluate_all();
    } catch (const std::exception& error) {
      if (!device::is_out_of_memory(error)) throw;
      if (!update_.has_graphs() && !may_release) {
        throw out_of_memory("validation after step ", error, {"a smaller validation.micro_batch_size"});
      }
    }
    // What failed holds nothing any more.
    if (update_.has_graphs()) {
      drop_graphs("validation needs the memory that they keep");
    } else {
      device::release_cached_memory(options_.device);
      may_release = false;
    }
  }
}

void Trainer::drop_graphs(const char* reason) {
  update_.drop_graphs();
  empty_cache(recipe::EmptyCache::kOnOom);
  meter_.count_graphs(0);
  sink_.notice(concat("cuda.graphs: off from here on, since ", reason));
}

// The weights, and, where there are averages, those too: their numbers are called ema_loss, ema_accuracy.
std::optional<EvalRecord> Trainer::evaluate_all() {
  const auto evaluate_model = [&] {
    return evaluate(parts_.model, *parts_.data.validation, parts_.objective, options_.update.precision,
                    options_.validation_micro_batch_size, stop_);
  };
  std::optional<EvalRecord> record = evaluate_model();
  if (!record || parts_.ema == nullptr) return record;
  const optim::AveragedWeights averaged(*parts_.ema);
  const std::optional<EvalRecord> averages = evaluate_model();
  if (!averages) return std::nullopt;
  record->ema_loss = averages->loss;
  for (const Metric& metric : averages->metrics) {
    record->metrics.push_back({of_averages(metric.name), metric.value});
  }
  return record;
}

void Trainer::validate() {
  if (!parts_.data.validation || validated_at_ == windows_) return;
  Stopwatch timer;
  sleep_if_asked({.step = windows_, .phase = "validation"});
  empty_cache(recipe::EmptyCache::kBeforeValidation);
  const std::optional<std::int64_t> held = meter_.read(/*with_driver=*/false).allocated;
  std::optional<EvalRecord> found = evaluate_or_explain();
  window_begin_ = clock_.record();
  if (!found) return;
  validated_at_ = windows_;
  EvalRecord& record = *found;
  record.seconds = timer.seconds();
  record.step = summary_.steps;
  record.epoch = summary_.epochs;
  // The first metric, of the averages where there are any: theirs are the second half.
  const Metric& followed = record.metrics[parts_.ema != nullptr ? record.metrics.size() / 2 : 0];
  record.best_metric = followed.name;
  record.best = followed.value;
  record.best_step = record.step;
  if (best_ && best_->best >= record.best) {
    record.best = best_->best;
    record.best_step = best_->best_step;
  }
  best_ = record;
  if (early_stopping_) early_stopping_->take(record);
  summary_.last_eval = record;
  summary_.validation_seconds += record.seconds;
  // Its peak belongs to the run, and not to the next step line.
  const device::MemoryReading after = read_memory(/*with_driver=*/true);
  if (held && after.allocated) tell(leaks_.after_validation(*held, *after.allocated));
  sink_.eval(record);
  since_validation_.restart();
}

std::optional<double> Trainer::eta_seconds() const {
  const std::int64_t measured = windows_ - options_.warmup_steps;
  std::optional<double> left;
  if (total_steps_ && measured > 0) {
    const std::int64_t steps_left = std::max<std::int64_t>(*total_steps_ - possible_steps() - 1, 0);
    left = pace_.seconds() / static_cast<double>(measured) * static_cast<double>(steps_left);
  }
  if (options_.max_seconds) {
    const double until_limit = std::max(*options_.max_seconds - since_start_.seconds(), 0.0);
    left = left ? std::min(*left, until_limit) : until_limit;
  }
  return left;
}

device::MemoryReading Trainer::read_memory(bool with_driver) {
  const device::MemoryReading reading = meter_.read(with_driver);
  device::extend(summary_.memory, reading);
  if (with_driver) {
    meter_.reset_peaks();
    keep_limit(reading);
  }
  return reading;
}

void Trainer::empty_cache(recipe::EmptyCache occasion) {
  if (options_.empty_cache >= occasion) device::release_cached_memory(options_.device);
}

// `reading` asked the driver.
void Trainer::keep_limit(const device::MemoryReading& reading) {
  if (parts_.memory_limit == nullptr) return;
  if (windows_ > options_.warmup_steps && !graphs_are_open()) parts_.memory_limit->settle();
  tell(parts_.memory_limit->check(reading));
}

void Trainer::tell(const std::optional<std::string>& notice) {
  if (notice) sink_.notice(*notice);
}

// Of `free` bytes of the device, those that this process may take.
std::int64_t Trainer::within_limit(std::int64_t free) {
  if (parts_.memory_limit == nullptr) return free;
  return std::min(free, parts_.memory_limit->bytes() - meter_.read().device.value_or(0));
}

}  // namespace

std::int64_t steps_per_epoch(const TrainOptions& options, std::int64_t train_samples) {
  return data::steps_per_epoch(train_samples, options.micro_batch_size, options.gradient_accumulation_steps);
}

std::optional<std::int64_t> total_steps(const TrainOptions& options, std::int64_t train_samples) {
  std::optional<std::int64_t> limit = options.max_steps;
  if (options.epochs) {
    const recipe::Interval whole{static_cast<double>(*options.epochs), recipe::Interval::Unit::kEpochs};
    const std::optional<std::int64_t> steps = optim::steps_of(whole, steps_per_epoch(options, train_samples));
    limit = limit ? std::min(*limit, *steps) : steps;
  }
  return limit;
}

RunSummary train(const TrainOptions& options, const TrainParts& parts, Sink& sink, const StopFlag& stop,
                 Trace* trace) {
  return Trainer(options, parts, sink, stop, trace).run();
}

}  // namespace gputrain::train
