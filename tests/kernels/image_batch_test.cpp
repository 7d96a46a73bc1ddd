#include "kernels/image_batch.h"

#include "kernels/launch.h"
#include "kernels/random_math.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace gputrain::kernels;
using gputrain::test::GpuArray;
using gputrain::test::has_gpu;

namespace {

constexpr float kPoison = -12345.0f;

struct GatherCase {
  std::int64_t stored;
  std::int64_t count;
  std::int64_t pixels;
  std::int64_t channels;
  std::int64_t images_offset = 0;  // bytes by which the images are moved off their alignment
  std::int64_t out_offset = 0;     // floats, likewise
};

struct GatherInputs {
  std::vector<std::uint8_t> images;  // with images_offset bytes before them
  std::vector<std::int64_t> ids;
  std::vector<float> scale;
  std::vector<float> shift;
  std::vector<float> out;  // poisoned, with a margin before and behind the result
};

GatherInputs random_inputs(const GatherCase& size, std::mt19937& random) {
  GatherInputs in;
  const std::int64_t elements = size.pixels * size.channels;
  for (std::int64_t i = 0; i < size.images_offset + size.stored * elements; ++i) {
    in.images.push_back(static_cast<std::uint8_t>(random()));
  }
  for (std::int64_t n = 0; n < size.count; ++n) {
    in.ids.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size.stored)));
  }
  std::uniform_real_distribution<float> real(-2, 2);
  for (std::int64_t c = 0; c < size.channels; ++c) in.scale.push_back(real(random));
  for (std::int64_t c = 0; c < size.channels; ++c) in.shift.push_back(real(random));
  in.out.assign(static_cast<std::size_t>(size.out_offset + size.count * elements + 8), kPoison);
  return in;
}

ImageGather operands(const GatherCase& size, const std::uint8_t* images, const std::int64_t* ids,
                     const float* scale, const float* shift, float* out) {
  ImageGather gather;
  gather.images = images + size.images_offset;
  gather.ids = ids;
  gather.scale = scale;
  gather.shift = shift;
  gather.out = out + size.out_offset;
  gather.count = size.count;
  gather.pixels = size.pixels;
  gather.channels = size.channels;
  return gather;
}

std::vector<float> gathered_on_cpu(const GatherCase& size, GatherInputs in) {
  gather_images_cpu(
      operands(size, in.images.data(), in.ids.data(), in.scale.data(), in.shift.data(), in.out.data()));
  return in.out;
}

std::vector<float> gathered_on_gpu(const GatherCase& size, const GatherInputs& in) {
  GpuArray<std::uint8_t> images(in.images);
  GpuArray<std::int64_t> ids(in.ids);
  GpuArray<float> scale(in.scale);
  GpuArray<float> shift(in.shift);
  GpuArray<float> out(in.out);
  gather_images_cuda(operands(size, images.data(), ids.data(), scale.data(), shift.data(), out.data()),
                     nullptr);
  return out.read();
}

// A host compiler with fused multiply-add may round once where the GPU rounds twice: an error of half a unit
// in the last place of a product up to 255 * 2.
constexpr float kFusedMargin = 512 * std::numeric_limits<float>::epsilon();

void require_same(const std::vector<float>& gpu, const std::vector<float>& cpu) {
  REQUIRE(gpu.size() == cpu.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    INFO("element " << i);
    REQUIRE(std::abs(gpu[i] - cpu[i]) <= kFusedMargin);
  }
}

template <class Label>
void compare_labels(std::int64_t count, std::mt19937& random) {
  std::vector<Label> labels(37);
  for (Label& label : labels) label = static_cast<Label>(random() % 256);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % labels.size());
  std::vector<std::int64_t> expected(static_cast<std::size_t>(count) + 3, -77);
  GpuArray<std::int64_t> out(expected);
  GpuArray<Label> gpu_labels(labels);
  GpuArray<std::int64_t> gpu_ids(ids);
  gather_labels_cpu(labels.data(), ids.data(), count, expected.data());
  gather_labels_cuda(gpu_labels.data(), gpu_ids.data(), count, out.data(), nullptr);
  REQUIRE(out.read() == expected);
}

}  // namespace

TEST_CASE("gather_images: picks images by id and normalises each channel with its own values", "[kernels]") {
  const std::vector<std::uint8_t> images = {0,   10,  20,  30,  40,  50,   // image 0: 2 pixels x 3 channels
                                            100, 110, 120, 130, 140, 255,  // image 1
                                            1,   2,   3,   4,   5,   6};   // image 2
  const std::vector<std::int64_t> ids = {1, 0, 1, 2};
  const std::vector<float> scale = {1, 2, 0.5f};
  const std::vector<float> shift = {0, -1, 10};
  std::vector<float> out(24 + 1, kPoison);
  gather_images_cpu(
      operands({3, 4, 2, 3}, images.data(), ids.data(), scale.data(), shift.data(), out.data()));
  REQUIRE(out == std::vector<float>{100,    219, 70,    130, 279, 137.5f,  // image 1
                                    0,      19,  20,    30,  79,  35,      // image 0
                                    100,    219, 70,    130, 279, 137.5f,  // image 1
                                    1,      3,   11.5f, 4,   9,   13,      // image 2
                                    kPoison});
}

TEST_CASE("gather_images: a batch of no images writes nothing", "[kernels]") {
  float out = kPoison;
  const std::uint8_t image = 7;
  const float one = 1;
  gather_images_cpu(operands({1, 0, 1, 1}, &image, nullptr, &one, &one, &out));
  REQUIRE(out == kPoison);
}

TEST_CASE("gather_labels: bytes and 64-bit labels become 64-bit targets", "[kernels]") {
  const std::vector<std::int64_t> ids = {2, 0, 2};
  const std::vector<std::uint8_t> bytes = {0, 9, 255};
  const std::vector<std::int64_t> words = {-100, 9, std::int64_t{1} << 40};
  std::vector<std::int64_t> out(4, -77);
  gather_labels_cpu(bytes.data(), ids.data(), 3, out.data());
  REQUIRE(out == std::vector<std::int64_t>{255, 0, 255, -77});
  gather_labels_cpu(words.data(), ids.data(), 3, out.data());
  REQUIRE(out == std::vector<std::int64_t>{std::int64_t{1} << 40, -100, std::int64_t{1} << 40, -77});
}

TEST_CASE("mix_bits: is the output function of the published SplitMix64", "[kernels]") {
  const std::uint64_t step = 0x9E3779B97F4A7C15ull;
  REQUIRE(mix_bits(1234567 + step) == 6457827717110365317ull);
  REQUIRE(mix_bits(1234567 + 2 * step) == 3203168211198807973ull);
  REQUIRE(mix_bits(1234567 + 3 * step) == 9817491932198370423ull);
}

TEST_CASE("random_bits: depend on seed and counter alone, and never change between versions", "[kernels]") {
  REQUIRE(random_bits(7, 0) == 0xb8b4c2977eabce45ull);
  REQUIRE(random_bits(7, 1) == 0xa65305fd338ec8feull);
  REQUIRE(random_bits(8, 0) == 0x4442e4266c0ac966ull);
}

TEST_CASE("random_below: spreads 64 random bits over 0 to bound - 1", "[kernels]") {
  REQUIRE(random_below(0, 10) == 0);
  REQUIRE(random_below(~std::uint64_t{0}, 10) == 9);
  REQUIRE(random_below(std::uint64_t{1} << 63, 10) == 5);
  REQUIRE(random_below((std::uint64_t{1} << 63) - 1, 10) == 4);
  REQUIRE(random_below(~std::uint64_t{0}, 1) == 0);
}

TEST_CASE("fill_random: writes the known bytes of a seed and stops at the count", "[kernels]") {
  const std::vector<std::uint8_t> known = {69,  206, 171, 126, 151, 194, 180, 184,
                                           254, 200, 142, 51,  253, 5,   83,  166};
  for (std::int64_t count = 0; count <= 16; ++count) {
    std::vector<std::uint8_t> out(17, 1);
    fill_random_cpu(out.data(), count, 7);
    for (std::int64_t i = 0; i < 17; ++i) {
      INFO("count " << count << ", byte " << i);
      REQUIRE(out[i] == (i < count ? known[i] : 1));
    }
  }
}

TEST_CASE("fill_random: every byte value turns up about equally often", "[kernels]") {
  std::vector<std::uint8_t> bytes(256 * 1000);
  fill_random_cpu(bytes.data(), static_cast<std::int64_t>(bytes.size()), 3);
  std::vector<int> counts(256, 0);
  for (const std::uint8_t byte : bytes) ++counts[byte];
  // 1000 of each are expected with a standard deviation of 32; 6 deviations hold for any seed one would pick.
  for (const int count : counts) REQUIRE(std::abs(count - 1000) < 190);
}

TEST_CASE("gather_grid: an image takes whole blocks, and blocks are capped at what a launch allows",
          "[kernels]") {
  const GatherGrid exact = gather_grid(3, 1024, 4);  // 256 threads x 4
  REQUIRE(exact.slices_per_image == 1);
  REQUIRE(exact.slices == 3);
  REQUIRE(exact.blocks == 3);
  const GatherGrid more = gather_grid(3, 1028, 4);
  REQUIRE(more.slices_per_image == 2);
  REQUIRE(more.blocks == 6);
  REQUIRE(gather_grid(1, 1, 1).blocks == 1);
  REQUIRE(gather_grid(256, 224 * 224 * 3, 4).slices_per_image == 147);
  const GatherGrid huge = gather_grid(std::int64_t{1} << 33, 1024, 4);
  REQUIRE(huge.slices == std::int64_t{1} << 33);
  REQUIRE(huge.blocks == 2147483647);
}

TEST_CASE("stride_blocks: one thread per item up to what a launch allows", "[kernels]") {
  REQUIRE(stride_blocks(1) == 1);
  REQUIRE(stride_blocks(256) == 1);
  REQUIRE(stride_blocks(257) == 2);
  REQUIRE(stride_blocks(std::numeric_limits<std::int64_t>::max()) == 2147483647);
}

TEST_CASE("is_aligned: tells addresses that allow wide loads from others", "[kernels]") {
  alignas(16) const char memory[32] = {};
  REQUIRE(is_aligned(memory, 16));
  REQUIRE_FALSE(is_aligned(memory + 4, 16));
  REQUIRE(is_aligned(memory + 4, 4));
  REQUIRE_FALSE(is_aligned(memory + 1, 4));
}

TEST_CASE("gather_images on the GPU equals the CPU for any size and alignment", "[kernels][gpu]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const std::vector<GatherCase> cases = {
      {5, 7, 28 * 28, 1},
      {5, 7, 32 * 32, 3},
      {3, 2, 31 * 33, 3},
      {3, 4, 5, 1},
      {3, 4, 1, 1},
      {3, 5, 1, 4},
      {2, 3, 17 * 16, 2},
      {2, 3, 9, 5},
      {5, 7, 32 * 32, 3, 1},
      {5, 7, 32 * 32, 3, 4},
      {5, 7, 32 * 32, 3, 0, 1},
      {5, 7, 32 * 32, 3, 0, 4},
      {5, 7, 32 * 32, 1, 2, 3},
      {1, 1000, 8, 3},
      {4, 3, 224 * 224, 3},
      {4, 3, 1024, 1},
      {4, 3, 1028, 1},
      {2, 0, 28 * 28, 1},
      {3, 2, 101 * 101, 7, 3},
      {3, 70000, 4, 1},
  };
  for (const GatherCase& size : cases) {
    INFO("seed " << seed << ": " << size.count << " of " << size.stored << " images, " << size.pixels << "x"
                 << size.channels << ", offsets " << size.images_offset << " and " << size.out_offset);
    const GatherInputs in = random_inputs(size, random);
    require_same(gathered_on_gpu(size, in), gathered_on_cpu(size, in));
  }
}

TEST_CASE("gather_labels on the GPU equals the CPU", "[kernels][gpu]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (const std::int64_t count : {0, 1, 255, 256, 257, 10007}) {
    INFO("seed " << seed << ", count " << count);
    compare_labels<std::uint8_t>(count, random);
    compare_labels<std::int64_t>(count, random);
  }
}

TEST_CASE("fill_random on the GPU writes the same bytes as the CPU at any alignment", "[kernels][gpu]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  const std::uint64_t seed = std::random_device{}();
  for (const std::int64_t count : {0, 1, 7, 8, 9, 2047, 2048, 2049, 100003}) {
    for (const std::int64_t offset : {0, 1, 4, 8}) {
      INFO("seed " << seed << ", count " << count << ", offset " << offset);
      std::vector<std::uint8_t> expected(static_cast<std::size_t>(offset + count + 9), 171);
      GpuArray<std::uint8_t> out(expected);
      fill_random_cpu(expected.data() + offset, count, seed);
      fill_random_cuda(out.data() + offset, count, seed, nullptr);
      REQUIRE(out.read() == expected);
    }
  }
}
