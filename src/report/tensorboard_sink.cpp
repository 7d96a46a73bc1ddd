#include "report/tensorboard_sink.h"

#include "base/text.h"
#include "report/output_file.h"
#include "report/tfrecord.h"
#include "train/throughput.h"

#include <protozero/pbf_writer.hpp>

#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gputrain::report {
namespace {

// Field numbers of tensorboard/compat/proto/event.proto and summary.proto.
constexpr protozero::pbf_tag_type kEventWallTime = 1;
constexpr protozero::pbf_tag_type kEventStep = 2;
constexpr protozero::pbf_tag_type kEventFileVersion = 3;
constexpr protozero::pbf_tag_type kEventSummary = 5;
constexpr protozero::pbf_tag_type kSummaryValue = 1;
constexpr protozero::pbf_tag_type kValueTag = 1;
constexpr protozero::pbf_tag_type kValueSimpleValue = 2;

class Scalars {
 public:
  void add(const std::string& tag, double value) { scalars_.emplace_back(tag, static_cast<float>(value)); }
  void add(const std::string& tag, std::optional<double> value) {
    if (value) add(tag, *value);
  }
  void add_gib(const std::string& tag, std::optional<std::int64_t> bytes) {
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    if (bytes) add(tag, static_cast<double>(*bytes) / kGiB);
  }
  void add(const std::string& folder, const std::vector<train::Metric>& metrics) {
    for (const train::Metric& metric : metrics) add(folder + metric.name, metric.value);
  }
  // A Summary message.
  std::string message() const {
    std::string bytes;
    protozero::pbf_writer summary(bytes);
    for (const auto& [tag, number] : scalars_) {
      protozero::pbf_writer value(summary, kSummaryValue);
      value.add_string(kValueTag, tag);
      value.add_float(kValueSimpleValue, number);
    }
    return bytes;
  }

 private:
  std::vector<std::pair<std::string, float>> scalars_;
};

class TensorboardSink : public train::Sink {
 public:
  TensorboardSink(const std::filesystem::path& event_file, UnixClock clock)
      : file_(event_file), clock_(std::move(clock)) {
    std::string event;
    protozero::pbf_writer writer(event);
    writer.add_double(kEventWallTime, clock_());
    writer.add_string(kEventFileVersion, "brain.Event:2");
    file_.append(tfrecord(event));
  }

  void start(const train::RunInfo& info) override { unit_ = info.unit; }

  // A skipped window has no step of its own: it would stand over the last applied one.
  void step(const train::StepRecord& record) override {
    Scalars scalars;
    if (record.skipped) {
      scalars.add("train/skipped", static_cast<double>(++skipped_));
      write(record.step, scalars);
      return;
    }
    scalars.add("train/loss", record.loss);
    scalars.add("train/grad_norm", record.grad_norm);
    scalars.add("train/learning_rate", record.learning_rate);
    scalars.add("train/epoch", record.epoch);
    if (record.loss_scale) scalars.add("train/loss_scale", *record.loss_scale);
    scalars.add("throughput/" + unit_ + "_per_second", train::samples_per_second(record));
    scalars.add("throughput/step_seconds", record.seconds);
    scalars.add("throughput/data_wait_seconds", record.data_wait_seconds);
    scalars.add_gib("memory/allocated_peak_gib", record.memory.allocated_peak);
    scalars.add_gib("memory/reserved_peak_gib", record.memory.reserved_peak);
    scalars.add_gib("memory/device_peak_gib", record.memory.device_peak);
    write(record.step, scalars);
  }

  void eval(const train::EvalRecord& record) override {
    Scalars scalars;
    scalars.add("validation/loss", record.loss);
    scalars.add("validation/ema_loss", record.ema_loss);
    scalars.add("validation/", record.metrics);
    write(record.step, scalars);
  }

  void notice(const std::string&) override {}
  void finish(const train::RunSummary&) override {}

 private:
  void write(std::int64_t step, const Scalars& scalars) {
    std::string event;
    protozero::pbf_writer writer(event);
    writer.add_double(kEventWallTime, clock_());
    writer.add_int64(kEventStep, step);
    writer.add_message(kEventSummary, scalars.message());
    file_.append(tfrecord(event));
  }

  OutputFile file_;
  UnixClock clock_;
  std::string unit_;
  std::int64_t skipped_ = 0;
};

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

}  // namespace

std::string event_file_name(double unix_time) {
  return concat("events.out.tfevents.", static_cast<std::int64_t>(unix_time), ".", host_name(), ".",
                ::getpid(), ".0");
}

std::unique_ptr<train::Sink> tensorboard_sink(const std::filesystem::path& event_file, UnixClock clock) {
  return std::make_unique<TensorboardSink>(event_file, std::move(clock));
}

}  // namespace gputrain::report
