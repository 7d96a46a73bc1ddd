#include "report/jsonl_sink.h"

#include "report/json_records.h"
#include "report/output_file.h"

#include <string>
#include <utility>

namespace gputrain::report {
namespace {

class JsonlSink : public train::Sink {
 public:
  JsonlSink(const std::filesystem::path& path, UnixClock clock) : file_(path), clock_(std::move(clock)) {}

  void start(const train::RunInfo& info) override {
    info_ = info;
    write("start", to_json(info));
  }
  void step(const train::StepRecord& record) override { write("step", to_json(record)); }
  void eval(const train::EvalRecord& record) override { write("eval", to_json(record)); }
  void notice(const std::string& text) override { write("notice", Json{{"text", text}}); }
  void finish(const train::RunSummary& summary) override { write("summary", to_json(info_, summary)); }

 private:
  void write(const char* kind, const Json& fields) {
    Json line{{"kind", kind}, {"unix_seconds", clock_()}};
    line.update(fields);
    file_.append(json_line(line) + "\n");
  }

  OutputFile file_;
  UnixClock clock_;
  train::RunInfo info_;
};

}  // namespace

std::unique_ptr<train::Sink> jsonl_sink(const std::filesystem::path& path, UnixClock clock) {
  return std::make_unique<JsonlSink>(path, std::move(clock));
}

}  // namespace gputrain::report
