#pragma once

#include "train/records.h"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gputrain::report {

// Hands every record to each of its sinks, in the order they were added.
class Fanout : public train::Sink {
 public:
  void add(std::unique_ptr<train::Sink> sink);

  void start(const train::RunInfo& info) override;
  void step(const train::StepRecord& record) override;
  void eval(const train::EvalRecord& record) override;
  void notice(const std::string& text) override;
  void ledger(const profile::RunLedger& ledger) override;
  // Every sink gets to finish, also after one has failed; the first failure is thrown then.
  void finish(const train::RunSummary& summary) override;

 private:
  std::vector<std::unique_ptr<train::Sink>> sinks_;
};

// A sink that writes into the run directory and that a key of `logging` turns on.
struct FileSink {
  std::string_view key;                 // "jsonl"
  std::vector<std::string_view> paths;  // in the run directory: "metrics.jsonl"; a folder ends with a slash
  std::unique_ptr<train::Sink> (*open)(const std::filesystem::path& run_dir);
};

// jsonl, csv, tensorboard; all.cpp has the rows.
const std::vector<FileSink>& all_file_sinks();

}  // namespace gputrain::report
