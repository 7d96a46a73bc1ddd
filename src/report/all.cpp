#include "report/csv_sink.h"
#include "report/jsonl_sink.h"
#include "report/sinks.h"
#include "report/tensorboard_sink.h"

namespace gputrain::report {
namespace {

std::unique_ptr<train::Sink> open_jsonl(const std::filesystem::path& run_dir) {
  return jsonl_sink(run_dir / "metrics.jsonl");
}

std::unique_ptr<train::Sink> open_csv(const std::filesystem::path& run_dir) {
  return csv_sink(run_dir);
}

std::unique_ptr<train::Sink> open_tensorboard(const std::filesystem::path& run_dir) {
  return tensorboard_sink(run_dir / "tb" / event_file_name(unix_seconds()));
}

}  // namespace

const std::vector<FileSink>& all_file_sinks() {
  static const std::vector<FileSink> sinks{{"jsonl", {"metrics.jsonl"}, open_jsonl},
                                           {"csv", {"metrics.csv", "evals.csv"}, open_csv},
                                           {"tensorboard", {"tb/"}, open_tensorboard}};
  return sinks;
}

}  // namespace gputrain::report
