#include "base/error.h"
#include "report/csv_sink.h"
#include "report/jsonl_sink.h"
#include "report/log_file.h"
#include "report/records.h"
#include "report/sinks.h"
#include "report/tensorboard_sink.h"
#include "report/tfrecord.h"
#include "support/catch.h"
#include "support/python.h"
#include "support/temporary_folder.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <csignal>
#include <limits>
#include <regex>
#include <sstream>
#include <sys/resource.h>
#include <vector>

using namespace gputrain;
using namespace gputrain::testing;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double noon() {
  return 1700000000.5;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::istringstream text(text_of(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kFileSystem);
    return error.what();
  }
  return "";
}

// Writes beyond `bytes` of a file fail, as on a full disk, as long as this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &saved_);
    rlimit limit = saved_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &saved_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit saved_{};
  void (*handler_)(int);
};

class CountingSink : public train::Sink {
 public:
  CountingSink(std::string name, std::string& calls, bool fails = false)
      : name_(std::move(name)), calls_(calls), fails_(fails) {}
  void start(const train::RunInfo&) override { calls_ += name_ + " start\n"; }
  void step(const train::StepRecord&) override { calls_ += name_ + " step\n"; }
  void eval(const train::EvalRecord&) override { calls_ += name_ + " eval\n"; }
  void notice(const std::string&) override { calls_ += name_ + " notice\n"; }
  void finish(const train::RunSummary&) override {
    calls_ += name_ + " finish\n";
    if (fails_) throw Error(ExitCode::kFileSystem, name_ + " failed");
  }

 private:
  std::string name_;
  std::string& calls_;
  bool fails_;
};

}  // namespace

TEST_CASE("fanout: every sink gets every record, in order", "[report]") {
  std::string calls;
  report::Fanout fanout;
  fanout.add(std::make_unique<CountingSink>("a", calls));
  fanout.add(std::make_unique<CountingSink>("b", calls));
  fanout.start(small_run());
  fanout.step(step_record(1));
  fanout.eval(eval_record());
  fanout.notice("x");
  CHECK(calls == "a start\nb start\na step\nb step\na eval\nb eval\na notice\nb notice\n");
}

TEST_CASE("fanout: all sinks finish, also after one has failed", "[report]") {
  std::string calls;
  report::Fanout fanout;
  fanout.add(std::make_unique<CountingSink>("a", calls, true));
  fanout.add(std::make_unique<CountingSink>("b", calls, true));
  CHECK(error_of([&] { fanout.finish(run_summary()); }) == "a failed");
  CHECK(calls == "a finish\nb finish\n");
}

TEST_CASE("file sinks: the rows name their keys and write where they say", "[report]") {
  const TemporaryFolder folder;
  std::vector<std::string> keys;
  for (const report::FileSink& sink : report::all_file_sinks()) {
    keys.emplace_back(sink.key);
    sink.open(folder.path())->step(step_record(1));
    CHECK(std::filesystem::exists(folder.path() / sink.paths.front()));
  }
  CHECK(keys == std::vector<std::string>{"jsonl", "csv", "tensorboard"});
}

TEST_CASE("metrics.jsonl: one line for each record, there as soon as it happened", "[report]") {
  const TemporaryFolder folder;
  const auto sink = report::jsonl_sink(folder / "run/metrics.jsonl", noon);
  sink->start(small_run());
  sink->step(step_record(120));
  CHECK(
      lines_of(folder / "run/metrics.jsonl").at(1) ==
      R"({"kind":"step","unix_seconds":1700000000.5,"step":120,"window":120,"epoch":0.25,"samples":128,)"
      R"("samples_total":15360,"targets":128,"micro_batches":4,"loss":2.3141,"grad_norm":0.866,)"
      R"("learning_rate":0.1,"skipped":false,"skip_reason":null,"loss_scale":null,"warmup":false,"seconds":0.155,)"
      R"("data_wait_seconds":0.00155,"samples_per_second":825.8064516129033,"eta_seconds":780.0,)"
      R"("memory_allocated_bytes":5368709120,"memory_reserved_bytes":6442450944,)"
      R"("memory_device_bytes":7516192768,"memory_allocated_peak_bytes":8589934592,)"
      R"("memory_reserved_peak_bytes":9663676416,"memory_device_peak_bytes":10522669875,)"
      R"("memory_device_is_estimate":false})");
  sink->eval(eval_record());
  sink->notice("a \"quoted\" notice");
  sink->finish(run_summary());
  std::vector<std::string> kinds;
  for (const std::string& line : lines_of(folder / "run/metrics.jsonl")) {
    kinds.push_back(nlohmann::json::parse(line)["kind"]);
  }
  CHECK(kinds == std::vector<std::string>{"start", "step", "eval", "notice", "summary"});
}

TEST_CASE("metrics.jsonl: what is not a number is null, with its name beside it", "[report]") {
  const TemporaryFolder folder;
  const auto sink = report::jsonl_sink(folder / "metrics.jsonl", noon);
  train::StepRecord record;
  record.loss = kNan;
  record.grad_norm = -kInfinity;
  sink->step(record);
  const std::string line = lines_of(folder / "metrics.jsonl").at(0);
  CHECK_THAT(line,
             ContainsSubstring(R"("loss":null,"loss_text":"nan","grad_norm":null,"grad_norm_text":"-inf",)"));
  CHECK_THAT(line, ContainsSubstring(
                       R"("samples_per_second":null,"eta_seconds":null,"memory_allocated_bytes":null,)"));
}

TEST_CASE("metrics.jsonl: a file that cannot be written is named, with the reason", "[report]") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "metrics.jsonl");
  const auto sink = report::jsonl_sink(folder / "metrics.jsonl", noon);
  CHECK(error_of([&] { sink->step(step_record(1)); }) ==
        "cannot write " + (folder / "metrics.jsonl").string() +
            ": No space left on device; make room, or train elsewhere with output_dir=FOLDER");
  std::filesystem::create_directory(folder / "a-folder");
  CHECK(error_of([&] { report::jsonl_sink(folder / "a-folder", noon); }) ==
        "cannot write " + (folder / "a-folder").string() +
            ": Is a directory; train elsewhere with output_dir=FOLDER");
}

TEST_CASE("metrics.jsonl: a disk that fills up in mid-line leaves whole lines", "[report]") {
  const TemporaryFolder folder;
  const auto sink = report::jsonl_sink(folder / "metrics.jsonl", noon);
  sink->notice("fits");
  const std::string before = text_of(folder / "metrics.jsonl");
  std::string error;
  {
    const FileSizeLimit limit(before.size() + 10);
    error = error_of([&] { sink->notice("does not fit"); });
  }
  CHECK(error == "cannot write " + (folder / "metrics.jsonl").string() +
                     ": File too large; train elsewhere with output_dir=FOLDER");
  CHECK(text_of(folder / "metrics.jsonl") == before);
}

TEST_CASE("metrics.csv: a header, then a row for each window", "[report]") {
  const TemporaryFolder folder;
  const auto sink = report::csv_sink(folder.path());
  sink->step(step_record(120));
  train::StepRecord bare;
  bare.targets = 2;
  bare.loss = kNan;
  bare.skipped = true;
  bare.warmup = true;
  sink->step(bare);
  bare.targets = 0;
  sink->step(bare);
  const auto lines = lines_of(folder / "metrics.csv");
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] ==
        "step,window,epoch,samples,samples_total,targets,micro_batches,loss,grad_norm,learning_rate,skipped,"
        "skip_reason,loss_scale,"
        "warmup,seconds,data_wait_seconds,samples_per_second,memory_allocated_bytes,memory_reserved_bytes,"
        "memory_device_bytes,memory_allocated_peak_bytes,memory_reserved_peak_bytes,memory_device_peak_bytes,"
        "memory_device_is_estimate");
  CHECK(lines[1] ==
        "120,120,0.25,128,15360,128,4,2.3141,0.866,0.1,0,,,0,0.155,0.00155,825.8064516129033,5368709120,"
        "6442450944,"
        "7516192768,8589934592,9663676416,10522669875,0");
  CHECK(lines[2] == "0,0,0,0,0,2,0,nan,0,0,1,not_finite,,1,0,0,,,,,,,,0");
  CHECK(lines[3] == "0,0,0,0,0,0,0,,,0,1,no_targets,,1,0,0,,,,,,,,0");
}

TEST_CASE("evals.csv: a row for each evaluation, odd names in quotes", "[report]") {
  const TemporaryFolder folder;
  const auto sink = report::csv_sink(folder.path());
  train::EvalRecord record = eval_record();
  record.metrics[1].name = "top \"5\", strict";
  sink->eval(record);
  CHECK(text_of(folder / "evals.csv") ==
        "step,epoch,samples,loss,best_metric,best,best_step,seconds,accuracy,\"top \"\"5\"\", strict\"\n"
        "235,1,10000,0.412,accuracy,0.852,235,1.2,0.852,0.996\n");
}

TEST_CASE("evals.csv and metrics.jsonl: averaged weights have their numbers beside the others", "[report]") {
  const TemporaryFolder folder;
  report::csv_sink(folder.path())->eval(averaged_eval_record());
  const auto rows = lines_of(folder / "evals.csv");
  CHECK_THAT(rows.at(0), Catch::Matchers::EndsWith(",seconds,ema_loss,accuracy,top5,ema_accuracy,ema_top5"));
  CHECK_THAT(rows.at(1), Catch::Matchers::EndsWith(",1.2,0.398,0.852,0.996,0.861,0.997"));
  report::jsonl_sink(folder / "metrics.jsonl", noon)->eval(averaged_eval_record());
  const auto record = nlohmann::json::parse(text_of(folder / "metrics.jsonl"));
  CHECK(record["ema_loss"] == 0.398);
  CHECK(record["metrics"]["ema_accuracy"] == 0.861);
  CHECK(record["best_metric"] == "ema_accuracy");
}

TEST_CASE("evals.csv: without an evaluation there is no such file", "[report]") {
  const TemporaryFolder folder;
  report::csv_sink(folder.path())->step(step_record(1));
  CHECK(std::filesystem::exists(folder / "metrics.csv"));
  CHECK_FALSE(std::filesystem::exists(folder / "evals.csv"));
}

TEST_CASE("metrics.csv: a NaN is nan, whatever its sign bit", "[report]") {
  const TemporaryFolder folder;
  train::StepRecord record;
  record.loss = std::copysign(kNan, -1.0);
  report::csv_sink(folder.path())->step(record);
  CHECK_THAT(lines_of(folder / "metrics.csv").at(1), ContainsSubstring(",nan,"));
  CHECK_THAT(lines_of(folder / "metrics.csv").at(1), !ContainsSubstring("-nan"));
}

TEST_CASE("metrics.csv: a second part of the run goes on without a second header", "[report]") {
  const TemporaryFolder folder;
  report::csv_sink(folder.path())->eval(eval_record());
  report::csv_sink(folder.path())->eval(eval_record());
  CHECK(lines_of(folder / "evals.csv").size() == 3);
}

TEST_CASE("train.log: the terminal's lines with date, time and level", "[report]") {
  const TemporaryFolder folder;
  const auto sink = report::log_file(folder / "train.log", 3);
  sink->start(small_run());
  for (std::int64_t step = 1; step <= 2; ++step) sink->step(step_record(step));
  sink->eval(eval_record());
  sink->notice("a {} notice");
  sink->finish(run_summary());
  const auto lines = lines_of(folder / "train.log");
  REQUIRE(lines.size() > 6);
  const std::string time = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} )";
  CHECK(std::regex_match(lines[0], std::regex(time + "info: fashion: 11,173,962 parameters .*")));
  CHECK(std::regex_match(lines[1], std::regex(time + R"(info: step 1/5000 \| loss 2\.314 .*)")));
  CHECK(std::regex_match(lines[2], std::regex(time + "info: validation at step 235 .*")));
  CHECK(std::regex_match(lines[3], std::regex(time + R"(warning: a \{\} notice)")));
  CHECK(std::regex_match(lines[4], std::regex(time + "info: step 2/5000 .*")));
  CHECK(std::regex_match(lines[5], std::regex(time + "info: fashion: done, all epochs trained")));
}

TEST_CASE("train.log: a full disk is an error that names the file", "[report]") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "train.log");
  const auto sink = report::log_file(folder / "train.log", 1);
  CHECK(error_of([&] { sink->notice("x"); }) ==
        "cannot write " + (folder / "train.log").string() +
            ": No space left on device; make room, or train elsewhere with output_dir=FOLDER");
}

TEST_CASE("crc32c: the values of RFC 3720, and nothing", "[report]") {
  CHECK(report::crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(report::crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  CHECK(report::crc32c("123456789") == 0xe3069283U);
  CHECK(report::crc32c("") == 0);
}

TEST_CASE("tensorboard: the file has the name that TensorBoard looks for", "[report]") {
  CHECK(std::regex_match(report::event_file_name(1700000000.9),
                         std::regex(R"(events\.out\.tfevents\.1700000000\..+\.\d+\.0)")));
}

TEST_CASE("tensorboard: a full disk is an error that names the file", "[report]") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "events");
  CHECK(error_of([&] { report::tensorboard_sink(folder / "events", noon); }) ==
        "cannot write " + (folder / "events").string() +
            ": No space left on device; make room, or train elsewhere with output_dir=FOLDER");
}

TEST_CASE("tensorboard: TensorBoard itself reads the scalars back", "[report][python]") {
  if (test_python() == nullptr) GPUTRAIN_SKIP("GPUTRAIN_TEST_PYTHON is not set: no TensorBoard to read with");
  const TemporaryFolder folder;
  const auto sink = report::tensorboard_sink(folder / "tb" / report::event_file_name(noon()), noon);
  sink->start(small_run());
  train::StepRecord warmup = step_record(1);
  warmup.warmup = true;
  warmup.loss = kNan;
  sink->step(warmup);
  sink->step(step_record(2));
  train::StepRecord skipped = step_record(2);
  skipped.skipped = true;
  sink->step(skipped);
  sink->eval(eval_record());
  sink->finish(run_summary());
  // The file is still open: what a killed run leaves can be read.
  const ShellResult read = run_python("report/read_tensorboard.py", folder / "tb");
  CHECK(read.exit_code == 0);
  CHECK(read.output ==
        "memory/allocated_peak_gib 1:8 2:8\n"
        "memory/device_peak_gib 1:9.8 2:9.8\n"
        "memory/reserved_peak_gib 1:9 2:9\n"
        "throughput/data_wait_seconds 1:0.00155 2:0.00155\n"
        "throughput/img_per_second 2:825.806\n"
        "throughput/step_seconds 1:0.155 2:0.155\n"
        "train/epoch 1:0.25 2:0.25\n"
        "train/grad_norm 1:0.866 2:0.866\n"
        "train/learning_rate 1:0.1 2:0.1\n"
        "train/loss 1:nan 2:2.3141\n"
        "train/skipped 2:1\n"
        "validation/accuracy 235:0.852\n"
        "validation/loss 235:0.412\n"
        "validation/top5 235:0.996\n"
        "first wall time 1700000000.5\n");
}
