#include "data/synthetic.h"

#include "base/error.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace gputrain;
using namespace gputrain::data;
using Ids = std::vector<std::int64_t>;

namespace {

const DataContext kCpu{at::Device(at::kCPU), 1};

SyntheticOptions small() {
  SyntheticOptions options;
  options.shape = {1, 2, 4};
  options.num_classes = 10;
  options.samples = 20;
  options.validation_samples = 7;
  options.pool = 6;
  return options;
}

std::vector<float> pixels(const nn::Batch& batch) {
  const at::Tensor host = batch.input.cpu();
  const float* first = host.const_data_ptr<float>();
  return {first, first + host.numel()};
}

Ids labels(const nn::Batch& batch) {
  const at::Tensor host = batch.target.cpu();
  const auto* first = host.const_data_ptr<std::int64_t>();
  return {first, first + host.numel()};
}

}  // namespace

TEST_CASE("synthetic: has the sizes it is told", "[data]") {
  const DataSet set = build_synthetic(small(), kCpu);
  REQUIRE(set.sample_shape == Ids{1, 2, 4});
  REQUIRE(set.num_classes == 10);
  REQUIRE(set.train->size() == 20);
  REQUIRE(set.validation->size() == 7);
  const nn::Batch batch = set.train->batch({3, 19});
  REQUIRE(batch.input.sizes() == at::IntArrayRef({2, 1, 2, 4}));
  REQUIRE(batch.input.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST_CASE("synthetic: images and labels are the known ones of a seed", "[data]") {
  const DataSet set = build_synthetic(small(), kCpu);
  REQUIRE(labels(set.train->batch({0, 1, 2, 3, 4, 5})) == Ids{4, 5, 0, 3, 1, 4});
  REQUIRE(labels(set.validation->batch({0, 1, 2, 3, 4, 5})) == Ids{2, 1, 2, 2, 2, 5});
  const std::vector<int> known = {210, 63, 182, 103, 26, 76, 137, 235, 49, 13, 205, 227, 40, 220, 156, 117};
  const std::vector<float> found = pixels(set.train->batch({0, 1}));
  for (std::size_t i = 0; i < known.size(); ++i) {
    REQUIRE(found[i] == Approx((known[i] / 255.0 - 0.5) / 0.2898).margin(1e-5));
  }
}

TEST_CASE("synthetic: sample i shows image i modulo the pool", "[data]") {
  const DataSet set = build_synthetic(small(), kCpu);
  REQUIRE(pixels(set.train->batch({1, 5})) == pixels(set.train->batch({13, 17})));
  REQUIRE(labels(set.train->batch({1, 5})) == labels(set.train->batch({13, 17})));
  REQUIRE(pixels(set.train->batch({1})) != pixels(set.train->batch({2})));
}

TEST_CASE("synthetic: another seed and another split give other images", "[data]") {
  const DataSet set = build_synthetic(small(), kCpu);
  const DataSet other = build_synthetic(small(), {at::Device(at::kCPU), 2});
  REQUIRE(pixels(set.train->batch({0})) != pixels(other.train->batch({0})));
  REQUIRE(pixels(set.train->batch({0})) != pixels(set.validation->batch({0})));
}

TEST_CASE("synthetic: pixels have mean 0 and standard deviation 1", "[data]") {
  SyntheticOptions options = small();
  options.shape = {3, 64, 64};
  const std::vector<float> values = pixels(build_synthetic(options, kCpu).train->batch({0, 1, 2, 3, 4, 5}));
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const double count = static_cast<double>(values.size());
  // 73,728 values: the mean has a standard deviation of 0.004.
  REQUIRE(std::abs(sum / count) < 0.02);
  REQUIRE(std::abs(squares / count - 1) < 0.02);
}

TEST_CASE("synthetic: no validation samples is no validation split; a pool beyond the samples is cut",
          "[data]") {
  SyntheticOptions options = small();
  options.validation_samples = 0;
  options.samples = 2;
  options.pool = 1000000000;
  const DataSet set = build_synthetic(options, kCpu);
  REQUIRE(set.validation == nullptr);
  REQUIRE(set.train->size() == 2);
}

TEST_CASE("synthetic: a shape that is not three sizes and a pool that fits nowhere are refused", "[data]") {
  SyntheticOptions options = small();
  options.shape = {3, 224};
  REQUIRE_THROWS_WITH(build_synthetic(options, kCpu),
                      "data.shape has 2 values; expected three: channels, height, width");
  options.shape = {1000000, 1000000, 1000000};
  options.samples = 1000;
  REQUIRE_THROWS_WITH(build_synthetic(options, kCpu), ContainsSubstring("lower data.pool or data.shape"));
}

TEST_CASE("synthetic on the GPU: shows the same images and labels as on the CPU", "[data][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  SyntheticOptions options = small();
  options.shape = {3, 33, 17};
  const DataSet gpu = build_synthetic(options, {at::Device(at::kCUDA, 0), 9});
  const DataSet cpu = build_synthetic(options, {at::Device(at::kCPU), 9});
  const Ids ids = {0, 5, 19, 3, 3};
  const nn::Batch batch = gpu.train->batch(ids);
  REQUIRE(batch.input.is_cuda());
  REQUIRE(batch.target.is_cuda());
  REQUIRE(labels(batch) == labels(cpu.train->batch(ids)));
  const std::vector<float> found = pixels(batch);
  const std::vector<float> expected = pixels(cpu.train->batch(ids));
  REQUIRE(found.size() == expected.size());
  // Values up to 1.7; a host compiler with fused multiply-add rounds once where the GPU rounds twice.
  for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(std::abs(found[i] - expected[i]) <= 1e-6f);
}
