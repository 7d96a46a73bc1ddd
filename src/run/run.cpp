#include "run/run.h"

#include "base/file.h"
#include "base/stop_flag.h"
#include "base/text.h"
#include "device/device.h"
#include "device/environment.h"
#include "device/memory.h"
#include "report/log_file.h"
#include "report/sinks.h"
#include "report/summary.h"
#include "report/terminal_sink.h"
#include "run/assemble.h"
#include "run/run_dir.h"
#include "state/safetensors.h"
#include "train/stopwatch.h"

#include <csignal>
#include <iostream>
#include <optional>

namespace fs = std::filesystem;

namespace gputrain::run {
namespace {

constexpr const char* kWeightsFile = "model.safetensors";

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

void save_weights(const nn::Module& model, const fs::path& folder, train::RunSummary& summary) {
  const train::Stopwatch timer;
  state::NamedTensors tensors = model.named_parameters();
  for (const auto& buffer : model.named_buffers()) tensors.push_back(buffer);
  state::save_safetensors(folder / kWeightsFile, tensors,
                          {{"format", "pt"}, {"step", std::to_string(summary.steps)}});
  summary.written.push_back((folder / kWeightsFile).string());
  summary.saving_seconds += timer.seconds();
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

train::RunSummary train_into(const fs::path& folder, const Plan& plan, Assembly& made, train::Sink& sinks,
                             const StopFlag& stop, std::vector<std::string> written) {
  std::optional<train::Trace> trace;
  if (plan.recipe.logging.trace) trace.emplace(folder / *plan.recipe.logging.trace);
  sinks.start(made.info);
  for (const std::string& notice : made.notices) sinks.notice(notice);
  train::RunSummary summary =
      train::train(made.options, made.parts(), sinks, stop, trace ? &*trace : nullptr);
  summary.written = std::move(written);
  save_weights(*made.model, folder, summary);
  return summary;
}

}  // namespace

ExitCode run(const Request& request) {
  const StopFlag stop;
  device::install_counting_allocator();
  Plan plan = read_plan(request.recipe, request.arguments);
  resolve(plan);
  const fs::path path = plan.recipe.output_dir;
  RunDir folder(path, plan.resolved(), request.restart);
  if (folder.finished()) {
    std::cerr << path.string() << ": this run is finished; --restart trains it anew\n";
    return ExitCode::kDone;
  }

  Assembly made = assemble(plan);
  if (const fs::path earlier = folder.open(); !earlier.empty()) {
    made.notices.push_back(concat("the earlier run is now ", earlier.string()));
  }
  record_identity(plan, path);
  report::Fanout sinks;
  sinks.add(report::terminal_sink(report::stderr_terminal(plan.recipe.logging.progress.value_or(true)),
                                  plan.recipe.logging.log_every));
  std::vector<std::string> written;
  add_file_sinks(plan.recipe.logging, path, sinks, written);
  const train::RunSummary summary = train_into(path, plan, made, sinks, stop, std::move(written));
  write_atomically(path / kSummaryFile, report::summary_json(made.info, summary) + "\n");
  sinks.finish(summary);
  return exit_code(summary.reason);
}

}  // namespace gputrain::run
