#include "report/log_file.h"

#include "report/ledger.h"
#include "report/lines.h"
#include "report/output_file.h"
#include "report/summary.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <cmath>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>

namespace gputrain::report {
namespace {

// spdlog's own file sinks buffer, and before 1.10 a failed flush goes unnoticed.
class CheckedSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit CheckedSink(const std::filesystem::path& path) : file_(path) {}

  // The logger swallows exceptions, so the caller asks for them.
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    try {
      file_.append(std::string_view(line.data(), line.size()));
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void flush_() override {}

  OutputFile file_;
  std::exception_ptr failure_;
};

class LogFile : public train::Sink {
 public:
  LogFile(const std::filesystem::path& path, std::int64_t log_every)
      : sink_(std::make_shared<CheckedSink>(path)), logger_("train", sink_), lines_(log_every) {
    logger_.set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  }

  void start(const train::RunInfo& info) override {
    info_ = info;
    lines_.start(info);
    write(start_line(info));
  }

  void step(const train::StepRecord& record) override {
    const auto line = lines_.step(record);
    if (line) write(*line, std::isfinite(record.loss) ? spdlog::level::info : spdlog::level::warn);
  }

  void eval(const train::EvalRecord& record) override { write(eval_line(info_, record)); }
  void notice(const std::string& text) override { write(text, spdlog::level::warn); }

  void ledger(const profile::RunLedger& ledger) override {
    for (const std::string& line : ledger_lines(ledger)) write(line);
  }

  void finish(const train::RunSummary& summary) override {
    if (const auto line = lines_.finish()) write(*line);
    std::istringstream text(summary_text(info_, summary));
    for (std::string line; std::getline(text, line);) write(line);
  }

 private:
  void write(const std::string& line, spdlog::level::level_enum level = spdlog::level::info) {
    logger_.log(level, spdlog::string_view_t(line));
    sink_->rethrow_failure();
  }

  std::shared_ptr<CheckedSink> sink_;
  spdlog::logger logger_;
  StepLines lines_;
  train::RunInfo info_;
};

}  // namespace

std::unique_ptr<train::Sink> log_file(const std::filesystem::path& path, std::int64_t log_every) {
  return std::make_unique<LogFile>(path, log_every);
}

}  // namespace gputrain::report
