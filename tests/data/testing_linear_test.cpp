#include "data/testing_linear.h"

#include "base/error.h"
#include "idx_files.h"
#include "support/catch.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

using namespace gputrain;
using namespace gputrain::data;
using gputrain::test::TempFolder;

namespace {

const DataContext kCpu{at::Device(at::kCPU), 1};

LinearSamples read(const std::string& text) {
  std::istringstream in(text);
  return read_linear(in, "samples.txt");
}

}  // namespace

TEST_CASE("testing.linear: reads labels and values, skipping comments and empty lines", "[data]") {
  const LinearSamples samples = read("# two samples\n1 0.5 -2\n\n0 1e-3 4\r\n");
  REQUIRE(samples.features == 2);
  REQUIRE(samples.labels == std::vector<std::int64_t>{1, 0});
  REQUIRE(samples.values == std::vector<float>{0.5f, -2, 1e-3f, 4});
}

TEST_CASE("testing.linear: nan and inf are values, so that tests can feed them", "[data]") {
  const LinearSamples samples = read("0 nan -inf");
  REQUIRE(std::isnan(samples.values[0]));
  REQUIRE(std::isinf(samples.values[1]));
}

TEST_CASE("testing.linear: a faulty line is named", "[data]") {
  REQUIRE_THROWS_WITH(read("0 1\n1 x\n"),
                      "samples.txt:2: found x; expected lines of `label value value ...`");
  REQUIRE_THROWS_WITH(read("0.5 1\n"), "samples.txt:1: found 0.5; expected lines of `label value value ...`");
  REQUIRE_THROWS_WITH(read("-1 1\n"), "samples.txt:1: label is -1; expected 0 to 999999999");
  REQUIRE_THROWS_WITH(read("0\n"), "samples.txt:1: has 0 values; expected at least 1");
  REQUIRE_THROWS_WITH(read("0 1 2\n1 3\n"), "samples.txt:2: has 1 values; expected 2");
}

TEST_CASE("testing.linear: a file without samples is an error", "[data]") {
  REQUIRE_THROWS_WITH(read("# nothing\n"),
                      "samples.txt: has no samples; expected lines of `label value value ...`");
}

TEST_CASE("testing.linear: batches are [samples, features, 1, 1] with the values of the file", "[data]") {
  const TempFolder folder;
  TestingLinearOptions options;
  options.path = folder.write("train.txt", "1 0.5 -2\n0 3 4\n2 5 6\n");
  options.validation_path = folder.write("val.txt", "2 7 8\n");
  const DataSet set = build_testing_linear(options, kCpu);
  REQUIRE(set.sample_shape == std::vector<std::int64_t>{2, 1, 1});
  REQUIRE(set.num_classes == 3);
  REQUIRE(set.train->size() == 3);
  REQUIRE(set.validation->size() == 1);
  const nn::Batch batch = set.train->batch({2, 0});
  REQUIRE(batch.input.sizes() == at::IntArrayRef({2, 2, 1, 1}));
  REQUIRE(batch.input[0][0].item<float>() == 5);
  REQUIRE(batch.input[0][1].item<float>() == 6);
  REQUIRE(batch.input[1][0].item<float>() == 0.5f);
  REQUIRE(batch.input[1][1].item<float>() == -2);
  REQUIRE(batch.target[0].item<std::int64_t>() == 2);
  REQUIRE(batch.target[1].item<std::int64_t>() == 1);
  REQUIRE(batch.targets == 2);
  REQUIRE_THROWS_WITH(set.train->batch({3}), "sample 3 of a split of 3");
}

TEST_CASE("testing.linear: batches have the memory order that was asked for", "[data]") {
  const TempFolder folder;
  TestingLinearOptions options;
  options.path = folder.write("train.txt", "1 0.5 -2\n0 3 4\n");
  for (const bool channels_last : {true, false}) {
    const DataContext context{at::Device(at::kCPU), 1, channels_last};
    const at::Tensor input = build_testing_linear(options, context).train->batch({0, 1}).input;
    CHECK(input.strides() == (channels_last ? at::IntArrayRef({2, 1, 2, 2}) : at::IntArrayRef({2, 1, 1, 1})));
    CHECK(input[0][1].item<float>() == -2);
  }
}

TEST_CASE("testing.linear: labels of one class alone are refused", "[data]") {
  const TempFolder folder;
  TestingLinearOptions options;
  options.path = folder.write("train.txt", "0 1\n0 2\n");
  REQUIRE_THROWS_WITH(build_testing_linear(options, kCpu),
                      ContainsSubstring("train.txt: every label is 0; training needs at least 2 classes"));
}

TEST_CASE("testing.linear: files that are missing, folders or do not fit are named", "[data]") {
  const TempFolder folder;
  TestingLinearOptions options;
  REQUIRE_THROWS_WITH(build_testing_linear(options, kCpu), ContainsSubstring("data.path is not given"));
  options.path = folder.path("none");
  REQUIRE_THROWS_WITH(build_testing_linear(options, kCpu),
                      folder.path("none") + ": cannot be read; expected a text file");
  options.path = folder.path();
  REQUIRE_THROWS_WITH(build_testing_linear(options, kCpu), ContainsSubstring(": is a folder"));
  options.path = folder.write("train.txt", "2 1 2\n");
  options.num_classes = 2;
  REQUIRE_THROWS_WITH(build_testing_linear(options, kCpu),
                      folder.path("train.txt") + ": largest label is 2; expected 0 to 1 for 2 classes");
  options.num_classes = 5;
  options.validation_path = folder.write("val.txt", "0 1\n");
  REQUIRE_THROWS_WITH(build_testing_linear(options, kCpu),
                      ContainsSubstring("has 1 values per sample; expected 2"));
}
