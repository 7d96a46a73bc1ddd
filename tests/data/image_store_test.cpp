#include "data/image_store.h"

#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

using namespace gputrain;
using namespace gputrain::data;
using Ids = std::vector<std::int64_t>;

namespace {

template <class T>
at::Tensor tensor(const std::vector<T>& values, const Ids& shape, at::ScalarType type) {
  at::Tensor result = at::empty(shape, at::TensorOptions(type));
  std::memcpy(result.mutable_data_ptr(), values.data(), values.size() * sizeof(T));
  return result;
}

at::Tensor bytes(const std::vector<std::uint8_t>& values, const Ids& shape) {
  return tensor(values, shape, at::kByte);
}

// The elements as they lie in memory.
template <class T>
std::vector<T> in_memory(const at::Tensor& values) {
  const at::Tensor host = values.cpu();
  const T* first = host.const_data_ptr<T>();
  return {first, first + host.numel()};
}

// Two images of 1x2 pixels and 3 channels, labels 4 and 7.
ImageStore small_store(std::int64_t samples = 2) {
  return ImageStore(bytes({0, 10, 20, 30, 40, 50, 100, 110, 120, 130, 140, 150}, {2, 1, 2, 3}),
                    bytes({4, 7}, {2}), {{1, 2, 0.5f}, {0, -1, 10}}, samples);
}

}  // namespace

TEST_CASE("image store: a batch holds the normalised images and labels of its ids in their order", "[data]") {
  ImageStore store = small_store();
  REQUIRE(store.size() == 2);
  const nn::Batch batch = store.batch({1, 0, 1});
  REQUIRE(batch.input.sizes() == at::IntArrayRef({3, 3, 1, 2}));
  REQUIRE(batch.input.scalar_type() == at::kFloat);
  REQUIRE(batch.input.is_contiguous(at::MemoryFormat::ChannelsLast));
  REQUIRE(in_memory<float>(batch.input) == std::vector<float>{100, 219, 70, 130, 279, 85,  //
                                                              0, 19, 20, 30, 79, 35,       //
                                                              100, 219, 70, 130, 279, 85});
  REQUIRE(batch.target.scalar_type() == at::kLong);
  REQUIRE(in_memory<std::int64_t>(batch.target) == Ids{7, 4, 7});
  REQUIRE(batch.sample_ids == Ids{1, 0, 1});
  REQUIRE(batch.targets == 3);
  REQUIRE(batch.samples() == 3);
}

TEST_CASE("image store: an element is found by sample, channel, row and column", "[data]") {
  ImageStore store = small_store();
  const at::Tensor input = store.batch({1}).input;
  REQUIRE(input[0][0][0][1].item<float>() == 130);
  REQUIRE(input[0][2][0][0].item<float>() == 70);
}

TEST_CASE("image store: every sample counts one target", "[data]") {
  REQUIRE(small_store().targets({0, 1, 1}) == 3);
  REQUIRE(small_store().targets({}) == 0);
}

TEST_CASE("image store: samples beyond the stored images show them again", "[data]") {
  ImageStore store = small_store(5);
  REQUIRE(store.size() == 5);
  const nn::Batch batch = store.batch({4, 3, 2});
  REQUIRE(in_memory<std::int64_t>(batch.target) == Ids{4, 7, 4});
  REQUIRE(batch.sample_ids == Ids{4, 3, 2});
  REQUIRE(batch.input[1][0][0][0].item<float>() == 100);
}

TEST_CASE("image store: a sample outside the split is refused", "[data]") {
  ImageStore store = small_store();
  REQUIRE_THROWS_WITH(store.batch({0, 2}), "sample 2 of a split of 2");
  REQUIRE_THROWS_AS(store.batch({-1}), std::out_of_range);
}

TEST_CASE("image store: one batch does not change when the next is made", "[data]") {
  ImageStore store = small_store();
  const nn::Batch first = store.batch({0, 0});
  const nn::Batch second = store.batch({1, 1});
  REQUIRE(in_memory<std::int64_t>(first.target) == Ids{4, 4});
  REQUIRE(first.input[0][0][0][1].item<float>() == 30);
}

TEST_CASE("image store: 64-bit labels keep their value", "[data]") {
  ImageStore store(bytes({1, 2}, {2, 1, 1, 1}), tensor<std::int64_t>({999, 300}, {2}, at::kLong), {{1}, {0}},
                   2);
  REQUIRE(in_memory<std::int64_t>(store.batch({1, 0}).target) == Ids{300, 999});
}

TEST_CASE("normalisation: maps a byte b to (b / 255 - mean) / std", "[data]") {
  const Normalisation n = normalisation({0.5, 0}, {0.25, 2});
  REQUIRE(n.scale.size() == 2);
  REQUIRE(n.shift.size() == 2);
  REQUIRE(255 * n.scale[0] + n.shift[0] == Approx(2));    // (1 - 0.5) / 0.25
  REQUIRE(0 * n.scale[0] + n.shift[0] == Approx(-2));     // (0 - 0.5) / 0.25
  REQUIRE(255 * n.scale[1] + n.shift[1] == Approx(0.5));  // (1 - 0) / 2
  REQUIRE(n.shift[1] == 0);
}

// The ids of a batch reach the GPU through a pinned buffer while the host goes on: a buffer that was filled
// again too early would show up as batches with the ids of later ones.
TEST_CASE("image store on the GPU: many batches in flight all hold their own samples", "[data][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  const at::Device gpu(at::kCUDA, 0);
  std::mt19937 random(std::random_device{}());
  constexpr std::int64_t kImages = 1000;
  constexpr std::int64_t kSide = 33;
  std::vector<std::uint8_t> pixels(kImages * kSide * kSide * 3);
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random());
  std::vector<std::int64_t> labels(kImages);
  for (std::int64_t i = 0; i < kImages; ++i) labels[static_cast<std::size_t>(i)] = i;
  const at::Tensor images = bytes(pixels, {kImages, kSide, kSide, 3});
  const at::Tensor label_tensor = tensor(labels, {kImages}, at::kLong);
  const Normalisation n = {{0.5f, 2, 1}, {0, 1, -3}};  // exact in float32: both devices give equal values
  ImageStore host(images, label_tensor, n, kImages);
  ImageStore device(images.to(gpu), label_tensor.to(gpu), n, kImages);

  std::vector<nn::Batch> batches;
  for (int i = 0; i < 300; ++i) {
    Ids ids(256 + random() % 2);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % kImages);
    batches.push_back(device.batch(ids));
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    INFO("batch " << i);
    REQUIRE(in_memory<std::int64_t>(batches[i].target) == batches[i].sample_ids);
    if (i % 30 != 0) continue;
    const nn::Batch expected = host.batch(batches[i].sample_ids);
    REQUIRE(batches[i].input.is_contiguous(at::MemoryFormat::ChannelsLast));
    REQUIRE((in_memory<float>(batches[i].input) == in_memory<float>(expected.input)));
  }
}
