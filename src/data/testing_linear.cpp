#include "data/testing_linear.h"

#include "base/error.h"
#include "base/text.h"
#include "data/components.h"
#include "data/labels.h"
#include "data/sample_id.h"
#include "data/text_lines.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace gputrain::data {
namespace {

constexpr std::int64_t kLargestLabel = 999'999'999;
constexpr const char* kLine = "`label value value ...`";

// Batches are made on the host and copied while the host waits: fine for a handful of values.
class LinearSplit : public Split {
 public:
  LinearSplit(LinearSamples samples, const DataContext& context)
      : samples_(std::move(samples)),
        device_(context.device),
        format_(context.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.labels.size()); }

  nn::Batch batch(const std::vector<std::int64_t>& sample_ids) override {
    const auto count = static_cast<std::int64_t>(sample_ids.size());
    // At 1x1 both orders lay the values out alike; the strides differ.
    at::Tensor input = at::empty({count, samples_.features, 1, 1}, at::TensorOptions(at::kFloat), format_);
    at::Tensor target = at::empty({count}, at::TensorOptions(at::kLong));
    auto* values = input.mutable_data_ptr<float>();
    auto* labels = target.mutable_data_ptr<std::int64_t>();
    for (const std::int64_t id : sample_ids) {
      check_sample_id(id, size());
      values = std::copy_n(samples_.values.begin() + id * samples_.features, samples_.features, values);
      *labels++ = samples_.labels[static_cast<std::size_t>(id)];
    }
    nn::Batch batch;
    batch.input = input.to(device_);
    batch.target = target.to(device_);
    batch.sample_ids = sample_ids;
    batch.targets = count;
    return batch;
  }

  std::int64_t targets(const std::vector<std::int64_t>& sample_ids) const override {
    return static_cast<std::int64_t>(sample_ids.size());
  }

 private:
  LinearSamples samples_;
  at::Device device_;
  at::MemoryFormat format_;
};

void read_line(const std::string& line, const std::string& place, LinearSamples& samples) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  const auto label = parse_number<std::int64_t>(word, place, kLine);
  if (label < 0 || label > kLargestLabel) {
    throw Error(ExitCode::kData, concat(place, ": label is ", label, "; expected 0 to ", kLargestLabel));
  }
  std::int64_t features = 0;
  for (; words >> word; ++features) samples.values.push_back(parse_number<float>(word, place, kLine));
  if (samples.labels.empty()) samples.features = features;
  if (features == 0 || features != samples.features) {
    throw Error(ExitCode::kData,
                concat(place, ": has ", features, " values; expected ",
                       samples.labels.empty() ? "at least 1" : std::to_string(samples.features)));
  }
  samples.labels.push_back(label);
}

LinearSamples read_file(const std::string& path) {
  std::ifstream in = open_text_file(path);
  return read_linear(in, path);
}

std::int64_t largest(const std::vector<std::int64_t>& labels) {
  return *std::max_element(labels.begin(), labels.end());
}

void check_labels(const LinearSamples& samples, std::int64_t num_classes, const std::string& path) {
  if (largest(samples.labels) < num_classes) return;
  throw Error(ExitCode::kData, concat(path, ": largest label is ", largest(samples.labels),
                                      "; expected 0 to ", num_classes - 1, " for ", num_classes, " classes"));
}

}  // namespace

void describe(recipe::Visitor& v, TestingLinearOptions& o) {
  v.path("path", o.path, "text file of the training samples: `label value value ...` per line");
  v.path("validation_path", o.validation_path, "text file of the validation samples; null: no validation");
  v.integer("num_classes", o.num_classes, {2, 1e9}, "classes",
            "labels are 0 to num_classes - 1; auto: the largest training label + 1");
}

LinearSamples read_linear(std::istream& in, const std::string& name) {
  LinearSamples samples;
  for_each_line(in, name, [&samples](const std::string& line, const std::string& place) {
    read_line(line, place, samples);
  });
  if (samples.labels.empty()) {
    throw Error(ExitCode::kData, concat(name, ": has no samples; expected lines of ", kLine));
  }
  return samples;
}

DataSet build_testing_linear(const TestingLinearOptions& options, const DataContext& context) {
  if (!options.path) throw SettingError("data.path", "is not given; expected the path of a text file");
  LinearSamples train = read_file(*options.path);
  DataSet set;
  set.sample_shape = {train.features, 1, 1};
  set.num_classes = options.num_classes.value_or(largest(train.labels) + 1);
  set.unit = "sample";
  check_enough_classes(set.num_classes, *options.path);
  check_labels(train, set.num_classes, *options.path);
  if (options.validation_path) {
    LinearSamples validation = read_file(*options.validation_path);
    if (validation.features != train.features) {
      throw Error(ExitCode::kData,
                  concat(*options.validation_path, ": has ", validation.features,
                         " values per sample; expected ", train.features, ", as in ", *options.path));
    }
    check_labels(validation, set.num_classes, *options.validation_path);
    set.validation = std::make_unique<LinearSplit>(std::move(validation), context);
  }
  set.train = std::make_unique<LinearSplit>(std::move(train), context);
  return set;
}

DataComponent testing_linear() {
  return recipe::component("testing.linear", "samples of a few values from a text file, for tests",
                           &build_testing_linear);
}

}  // namespace gputrain::data
