#include "run/run.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/stop_flag.h"
#include "base/text.h"
#include "device/device.h"
#include "device/environment.h"
#include "device/memory.h"
#include "device/memory_history.h"
#include "nn/module.h"
#include "report/ledger.h"
#include "report/log_file.h"
#include "report/sinks.h"
#include "report/summary.h"
#include "report/terminal_sink.h"
#include "run/assemble.h"
#include "run/output.h"
#include "run/run_dir.h"
#include "state/safetensors.h"
#include "train/stopwatch.h"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

namespace fs = std::filesystem;

namespace gputrain::run {
namespace {

// Opens the sinks that the recipe asks for; adds what they write to `written`.
void add_file_sinks(const recipe::Logging& logging, const fs::path& folder, report::Fanout& sinks,
                    std::vector<std::string>& written) {
  sinks.add(report::log_file(folder / "train.log", logging.log_every));
  written.push_back((folder / "train.log").string());
  for (const report::FileSink& sink : report::all_file_sinks()) {
    const bool wanted = (sink.key == "jsonl" && logging.jsonl) || (sink.key == "csv" && logging.csv) ||
                        (sink.key == "tensorboard" && logging.tensorboard);
    if (!wanted) continue;
    sinks.add(sink.open(folder));
    for (const std::string_view file : sink.paths) written.push_back((folder / file).string());
  }
}

void record_identity(const Plan& plan, const fs::path& folder) {
  write_atomically(folder / "recipe.yaml", plan.text);
  write_atomically(folder / "env.json", device::to_json(device::inspect(GPUTRAIN_VERSION)));
  write_atomically(folder / kResolvedFile, plan.resolved());
}

// The averages, where there are any, beside the weights.
void save_weights(const Assembly& made, const fs::path& folder, std::int64_t steps) {
  sleep_if_asked({.phase = "save"});
  const state::Metadata metadata{{"format", "pt"}, {"step", std::to_string(steps)}};
  state::NamedTensors tensors = made.model->named_parameters();
  for (const auto& buffer : made.model->named_buffers()) tensors.push_back(buffer);
  state::save_safetensors(folder / kWeightsFile, tensors, metadata);
  if (made.ema) state::save_safetensors(folder / kAveragesFile, made.ema->averaged(tensors), metadata);
}

// Writes memory/ledger.json.
class LedgerFile : public train::Sink {
 public:
  explicit LedgerFile(fs::path path) : path_(std::move(path)) {}
  void start(const train::RunInfo& /*info*/) override {}
  void step(const train::StepRecord& /*record*/) override {}
  void eval(const train::EvalRecord& /*record*/) override {}
  void notice(const std::string& /*text*/) override {}
  void finish(const train::RunSummary& /*summary*/) override {}
  void ledger(const profile::RunLedger& ledger) override {
    create_folders(path_.parent_path());
    write_atomically(path_, report::ledger_json(ledger));
  }

 private:
  fs::path path_;
};

bool records_memory(const Plan& plan, const Assembly& made) {
  return plan.recipe.memory.snapshot && made.options.device.is_cuda();
}

void save_snapshot(const fs::path& folder) {
  create_folders((folder / kSnapshotFile).parent_path());
  write_atomically(folder / kSnapshotFile, device::memory_snapshot());
}

bool lacks_memory(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return known != nullptr ? known->code() == ExitCode::kOutOfMemory : device::is_out_of_memory(error);
}

// The parts of a run; that they do not fit is told with what is known about memory.
Assembly assemble_or_explain(const Plan& plan) {
  try {
    return assemble(plan);
  } catch (const std::exception& error) {
    if (dynamic_cast<const Error*>(&error) != nullptr || !device::is_out_of_memory(error)) throw;
    throw Error(ExitCode::kOutOfMemory,
                concat("before training: ",
                       device::describe_out_of_memory(error, at::Device(plan.recipe.device),
                                                      plan.recipe.memory.limit),
                       ". The model, its optimizer state or the data kept on the device (data.pool) are too "
                       "large"));
  }
}

// Knows how far a run has come, also after an exception.
class StepCounter : public train::Sink {
 public:
  void start(const train::RunInfo& /*info*/) override {}
  void step(const train::StepRecord& record) override { steps_ = record.step; }
  void eval(const train::EvalRecord& /*record*/) override {}
  void notice(const std::string& /*text*/) override {}
  void finish(const train::RunSummary& /*summary*/) override {}
  std::int64_t steps() const { return steps_; }

 private:
  std::int64_t steps_ = 0;
};

// A run that ends by an error: its reason goes to its files, and what it has learned to the disk, as far as
// either still takes them. The error itself is reported by the caller.
void salvage(const Plan& plan, const Assembly& made, const fs::path& folder, std::int64_t steps,
             train::Sink& files, const std::exception& reason) {
  const auto attempt = [](const auto& action) {
    try {
      action();
    } catch (const std::exception&) {
      // The first error is the one to tell.
    }
  };
  attempt([&] { files.notice("failed: " + device::plain_text(reason)); });
  if (records_memory(plan, made) && lacks_memory(reason)) attempt([&] { save_snapshot(folder); });
  std::error_code ignored;
  if (steps == 0 || fs::exists(folder / kWeightsFile, ignored)) return;
  attempt([&] { save_weights(made, folder, steps); });
}

ExitCode exit_code(train::StopReason reason) {
  switch (reason) {
    case train::StopReason::kNotFinite:
      return ExitCode::kNotFinite;
    case train::StopReason::kInterrupted:
      return ExitCode::kInterrupted;
    case train::StopReason::kTerminated:
      return ExitCode::kTerminated;
    default:
      return ExitCode::kDone;
  }
}

std::optional<train::Trace> open_trace(const recipe::Logging& logging, const fs::path& folder) {
  if (!logging.trace) return std::nullopt;
  const fs::path file = folder / *logging.trace;
  create_folders(file.parent_path());
  return std::optional<train::Trace>(std::in_place, file);
}

train::RunSummary train_into(const fs::path& folder, const Plan& plan, Assembly& made, train::Sink& sinks,
                             const StopFlag& stop) {
  std::optional<train::Trace> trace = open_trace(plan.recipe.logging, folder);
  sinks.start(made.info);
  for (const std::string& notice : made.notices) sinks.notice(notice);
  train::RunSummary summary =
      train::train(made.options, made.parts(), sinks, stop, trace ? &*trace : nullptr);
  const train::Stopwatch saving;
  save_weights(made, folder, summary.steps);
  if (records_memory(plan, made)) save_snapshot(folder);
  summary.saving_seconds = saving.seconds();
  return summary;
}

// Everything is where the log says it is, the summary first of all.
void conclude(const Plan& plan, const Assembly& made, const fs::path& folder,
              std::vector<std::string> written, train::RunSummary& summary, train::Sink& sinks) {
  // A file of evaluations is there only where something was evaluated.
  const auto is_missing = [](const std::string& file) {
    std::error_code ignored;
    return !fs::exists(file, ignored);
  };
  written.erase(std::remove_if(written.begin(), written.end(), is_missing), written.end());
  summary.written = std::move(written);
  summary.written.push_back((folder / kWeightsFile).string());
  if (records_memory(plan, made)) summary.written.push_back((folder / kSnapshotFile).string());
  if (made.ema) summary.written.push_back((folder / kAveragesFile).string());
  summary.written.push_back((folder / kSummaryFile).string());
  if (plan.recipe.logging.trace) summary.written.push_back((folder / *plan.recipe.logging.trace).string());
  write_atomically(folder / kSummaryFile, report::summary_json(made.info, summary) + "\n");
  sinks.finish(summary);
}

}  // namespace

ExitCode run(const Request& request) {
  check_faults();
  const StopFlag stop;
  device::install_counting_allocator();
  Plan plan = read_plan(request.recipe, request.arguments);
  resolve(plan, Purpose::kTrain);
  refuse_problems(plan);
  const fs::path path = plan.recipe.output_dir;
  RunDir folder(path, plan, request.restart);
  if (folder.finished()) {
    std::cerr << path.string() << ": this run is finished; --restart trains it anew\n";
    return ExitCode::kDone;
  }

  Assembly made = assemble_or_explain(plan);
  check_space(*made.model, plan.recipe.ema, path);
  check_trace(plan.recipe.logging, path);
  if (const fs::path earlier = folder.open(); !earlier.empty()) {
    made.notices.push_back(concat("the earlier run is now ", earlier.string()));
  }
  record_identity(plan, path);
  report::Fanout sinks;
  auto counter_sink = std::make_unique<StepCounter>();
  auto file_sinks = std::make_unique<report::Fanout>();
  const StepCounter& counter = *counter_sink;
  report::Fanout& files = *file_sinks;
  sinks.add(std::move(counter_sink));
  sinks.add(report::terminal_sink(report::stderr_terminal(plan.recipe.logging.progress.value_or(true)),
                                  plan.recipe.logging.log_every));
  sinks.add(std::move(file_sinks));
  std::vector<std::string> written;
  add_file_sinks(plan.recipe.logging, path, files, written);
  if (plan.recipe.memory.ledger) {
    files.add(std::make_unique<LedgerFile>(path / kLedgerFile));
    written.push_back((path / kLedgerFile).string());
  }
  try {
    train::RunSummary summary = train_into(path, plan, made, sinks, stop);
    conclude(plan, made, path, std::move(written), summary, sinks);
    return exit_code(summary.reason);
  } catch (const std::exception& error) {
    salvage(plan, made, path, counter.steps(), files, error);
    throw;
  }
}

}  // namespace gputrain::run
