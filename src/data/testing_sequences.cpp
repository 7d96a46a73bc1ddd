#include "data/testing_sequences.h"

#include "base/error.h"
#include "base/text.h"
#include "data/components.h"
#include "data/sample_id.h"
#include "data/text_lines.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace gputrain::data {
namespace {

constexpr std::int64_t kLargestToken = 999'999'999;
constexpr const char* kLine = "`token token ... | target target ...`";

// Batches are made on the host and copied while the host waits: fine for a handful of values.
class SequenceSplit : public Split {
 public:
  SequenceSplit(std::vector<Sequence> samples, std::int64_t length, std::int64_t ignore_index,
                at::Device device)
      : samples_(std::move(samples)), length_(length), ignore_index_(ignore_index), device_(device) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }

  nn::Batch batch(const std::vector<std::int64_t>& sample_ids) override {
    const auto count = static_cast<std::int64_t>(sample_ids.size());
    const at::TensorOptions options(at::kLong);
    at::Tensor input = at::zeros({count, length_}, options);
    at::Tensor target = at::full({count, length_}, ignore_index_, options);
    auto* input_row = input.mutable_data_ptr<std::int64_t>();
    auto* target_row = target.mutable_data_ptr<std::int64_t>();
    for (const std::int64_t id : sample_ids) {
      const Sequence& one = sample(id);
      std::copy(one.tokens.begin(), one.tokens.end(), input_row);
      std::copy(one.targets.begin(), one.targets.end(), target_row);
      input_row += length_;
      target_row += length_;
    }
    return {input.to(device_), target.to(device_), sample_ids, targets(sample_ids)};
  }

  std::int64_t targets(const std::vector<std::int64_t>& sample_ids) const override {
    std::int64_t count = 0;
    for (const std::int64_t id : sample_ids) {
      const std::vector<std::int64_t>& all = sample(id).targets;
      count += static_cast<std::int64_t>(all.size()) - std::count(all.begin(), all.end(), ignore_index_);
    }
    return count;
  }

 private:
  const Sequence& sample(std::int64_t id) const {
    check_sample_id(id, size());
    return samples_[static_cast<std::size_t>(id)];
  }

  std::vector<Sequence> samples_;
  std::int64_t length_;
  std::int64_t ignore_index_;
  at::Device device_;
};

std::vector<std::int64_t> numbers(const std::string& text, const std::string& place) {
  std::istringstream words(text);
  std::vector<std::int64_t> all;
  for (std::string word; words >> word;) all.push_back(parse_number<std::int64_t>(word, place, kLine));
  return all;
}

void check_range(std::int64_t value, const char* what, const std::string& place, std::int64_t largest,
                 const std::string& otherwise = "") {
  if (value >= 0 && value <= largest) return;
  throw Error(ExitCode::kData,
              concat(place, ": ", what, " is ", value, "; expected 0 to ", largest, otherwise));
}

// Tokens and targets are 0 to `largest`; targets may be ignored, too.
void check_numbers(const Sequence& sample, std::int64_t largest, std::int64_t ignore_index,
                   const std::string& why = "") {
  for (const std::int64_t token : sample.tokens) check_range(token, "a token", sample.place, largest, why);
  for (const std::int64_t target : sample.targets) {
    if (target == ignore_index) continue;
    check_range(target, "a target", sample.place, largest, concat(why, ", or ", ignore_index, " for none"));
  }
}

Sequence read_line(const std::string& line, const std::string& place, std::int64_t ignore_index) {
  const std::size_t bar = line.find('|');
  if (bar == std::string::npos) {
    throw Error(ExitCode::kData, concat(place, ": has no |; expected lines of ", kLine));
  }
  Sequence sample{numbers(line.substr(0, bar), place), numbers(line.substr(bar + 1), place), place};
  if (sample.tokens.empty() || sample.tokens.size() != sample.targets.size()) {
    throw Error(ExitCode::kData,
                concat(place, ": has ", sample.tokens.size(), " tokens and ", sample.targets.size(),
                       " targets; expected at least 1, as many of each"));
  }
  check_numbers(sample, kLargestToken, ignore_index);
  return sample;
}

std::vector<Sequence> read_file(const std::string& path, std::int64_t ignore_index) {
  std::ifstream in = open_text_file(path);
  return read_sequences(in, path, ignore_index);
}

// The largest number among tokens and targets that count.
std::int64_t largest_number(const std::vector<Sequence>& samples, std::int64_t ignore_index) {
  std::int64_t largest = 0;
  for (const Sequence& sample : samples) {
    for (const std::int64_t token : sample.tokens) largest = std::max(largest, token);
    for (const std::int64_t target : sample.targets) {
      if (target != ignore_index) largest = std::max(largest, target);
    }
  }
  return largest;
}

std::int64_t longest(const std::vector<Sequence>& samples) {
  std::size_t length = 0;
  for (const Sequence& sample : samples) length = std::max(length, sample.tokens.size());
  return static_cast<std::int64_t>(length);
}

void check_vocabulary(const std::vector<Sequence>& samples, std::int64_t vocab_size,
                      std::int64_t ignore_index) {
  const std::string why = concat(" for a vocabulary of ", vocab_size);
  for (const Sequence& sample : samples) check_numbers(sample, vocab_size - 1, ignore_index, why);
}

void check_length(const std::vector<Sequence>& samples, std::int64_t length) {
  for (const Sequence& sample : samples) {
    const auto found = static_cast<std::int64_t>(sample.tokens.size());
    if (found <= length) continue;
    throw Error(ExitCode::kData, concat(sample.place, ": has ", found, " tokens; expected at most ", length));
  }
}

}  // namespace

void describe(recipe::Visitor& v, TestingSequencesOptions& o) {
  v.path("path", o.path, "text file of the training samples: `token ... | target ...` per line");
  v.path("validation_path", o.validation_path, "text file of the validation samples; null: no validation");
  v.integer("vocab_size", o.vocab_size, {2, 1e9}, "tokens",
            "tokens and targets are 0 to vocab_size - 1; auto: the largest in the training file + 1");
  v.integer("ignore_index", o.ignore_index, {-1e9, 1e9}, "", "a target of this value is none");
  v.integer("length", o.length, {1, 1e6}, "positions",
            "samples are padded to it; auto: the longest of the training file");
}

std::vector<Sequence> read_sequences(std::istream& in, const std::string& name, std::int64_t ignore_index) {
  std::vector<Sequence> samples;
  for_each_line(in, name, [&](const std::string& line, const std::string& place) {
    samples.push_back(read_line(line, place, ignore_index));
  });
  if (samples.empty()) {
    throw Error(ExitCode::kData, concat(name, ": has no samples; expected lines of ", kLine));
  }
  return samples;
}

DataSet build_testing_sequences(const TestingSequencesOptions& options, const DataContext& context) {
  if (!options.path) throw SettingError("data.path", "is not given; expected the path of a text file");
  std::vector<Sequence> train = read_file(*options.path, options.ignore_index);
  const std::int64_t length = options.length.value_or(longest(train));
  DataSet set;
  set.sample_shape = {length};
  set.num_classes =
      options.vocab_size.value_or(std::max<std::int64_t>(largest_number(train, options.ignore_index) + 1, 2));
  set.ignore_index = options.ignore_index;
  set.unit = "sample";
  const auto make_split = [&](std::vector<Sequence> samples) {
    check_vocabulary(samples, set.num_classes, options.ignore_index);
    check_length(samples, length);
    return std::make_unique<SequenceSplit>(std::move(samples), length, options.ignore_index, context.device);
  };
  set.train = make_split(std::move(train));
  if (options.validation_path) {
    set.validation = make_split(read_file(*options.validation_path, options.ignore_index));
  }
  return set;
}

DataComponent testing_sequences() {
  return recipe::component("testing.sequences",
                           "sequences of tokens with their targets from a text file, for tests",
                           &build_testing_sequences);
}

}  // namespace gputrain::data
