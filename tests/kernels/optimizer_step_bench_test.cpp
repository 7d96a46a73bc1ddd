#include "kernels/optimizer_step.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

// More of the CUDA runtime, declared as in support/gpu.h.
extern "C" {
__attribute__((weak)) int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind,
                                          void* stream);
__attribute__((weak)) int cudaEventCreate(void** event);
__attribute__((weak)) int cudaEventRecord(void* event, void* stream);
__attribute__((weak)) int cudaEventSynchronize(void* event);
__attribute__((weak)) int cudaEventElapsedTime(float* milliseconds, void* from, void* to);
}

using namespace gputrain::kernels;
using gputrain::test::GpuArray;
using gputrain::test::has_gpu;

namespace {

using Counts = std::vector<std::int64_t>;

std::int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Elements of each parameter, in the models' order.
Counts resnet50() {
  Counts counts;
  const auto convolution = [&](std::int64_t in, std::int64_t out, std::int64_t size) {
    counts.insert(counts.end(), {out * in * size * size, out, out});  // and scale and shift of its norm
  };
  convolution(3, 64, 7);
  std::int64_t in = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = 64LL << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      convolution(in, width, 1);
      convolution(width, width, 3);
      convolution(width, 4 * width, 1);
      if (block == 0) convolution(in, 4 * width, 1);
      in = 4 * width;
    }
  }
  counts.insert(counts.end(), {2048 * 1000, 1000});
  return counts;
}

Counts gpt2() {
  constexpr std::int64_t kWidth = 768;
  Counts counts = {50257 * kWidth, 1024 * kWidth};
  const auto linear = [&](std::int64_t in, std::int64_t out) {
    counts.insert(counts.end(), {in * out, out});
  };
  const auto norm = [&] { counts.insert(counts.end(), {kWidth, kWidth}); };
  for (int layer = 0; layer < 12; ++layer) {
    norm();
    linear(kWidth, 3 * kWidth);
    linear(kWidth, kWidth);
    norm();
    linear(kWidth, 4 * kWidth);
    linear(4 * kWidth, kWidth);
  }
  norm();
  return counts;
}

// Every tensor begins where an allocator would put it.
std::int64_t padded(std::int64_t count) {
  return (count + 127) / 128 * 128;
}

// Median over 50 runs after 10, in seconds.
double median_seconds(const std::function<void()>& run) {
  void* begin = nullptr;
  void* end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> milliseconds;
  for (int i = 0; i < 60; ++i) {
    float elapsed = 0;
    cudaEventRecord(begin, nullptr);
    run();
    cudaEventRecord(end, nullptr);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&elapsed, begin, end);
    if (i >= 10) milliseconds.push_back(elapsed);
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  return milliseconds[milliseconds.size() / 2] * 1e-3;
}

// What a step of a model works on: arrays of ordinary numbers, long enough for 32-bit elements.
struct Memory {
  explicit Memory(const std::vector<float>& numbers)
      : weight(numbers), low(numbers), gradient(numbers), state1(numbers), state2(numbers) {}

  GpuArray<float> weight;
  GpuArray<float> low;
  GpuArray<float> gradient;
  GpuArray<float> state1;
  GpuArray<float> state2;
};

enum class Form { kFloat, kLowCopy, kLowOnly };

std::vector<OptimizerTensor> tensors_of(const Counts& counts, Memory& memory, Form form) {
  std::vector<OptimizerTensor> tensors;
  std::int64_t first = 0;
  for (const std::int64_t count : counts) {
    OptimizerTensor t;
    if (form != Form::kLowOnly) t.weight = memory.weight.data() + first;
    if (form != Form::kFloat) t.low = memory.low.data() + first;
    t.low_type = Element::kBfloat16;
    t.gradient = memory.gradient.data() + first;
    t.gradient_type = form == Form::kLowOnly ? Element::kBfloat16 : Element::kFloat32;
    t.state1 = memory.state1.data() + first;
    t.state2 = memory.state2.data() + first;
    t.count = count;
    t.weight_decay = 0.01F;
    tensors.push_back(t);
    first += padded(count);
  }
  return tensors;
}

struct Bench {
  const char* name;
  Form form;
  int bytes_per_element;
  std::function<void(OptimizerTable&, const StepScalars&)> run;
};

void measure(const char* model, const Counts& counts) {
  std::int64_t elements = 0;
  for (const std::int64_t count : counts) elements += padded(count);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> real(0.01F, 1);
  std::vector<float> numbers(static_cast<std::size_t>(elements));
  for (float& number : numbers) number = real(random);
  Memory memory(numbers);
  GpuArray<float> from(std::vector<float>(numbers.size() * 4));
  GpuArray<float> to(std::vector<float>(numbers.size() * 4));
  GpuArray<float> scalars({1e-4F, 1, 1, 1000});
  const float* four = scalars.data();

  const auto sgd = [](OptimizerTable& table, const StepScalars& s) { table.sgd({0.9, false}, s, nullptr); };
  const auto adamw = [](OptimizerTable& table, const StepScalars& s) { table.adamw({}, s, nullptr); };
  const auto lion = [](OptimizerTable& table, const StepScalars& s) { table.lion({}, s, nullptr); };
  const Bench benches[] = {
      {"sgd with momentum", Form::kFloat, 20, sgd},
      {"lion", Form::kFloat, 20, lion},
      {"adamw", Form::kFloat, 28, adamw},
      {"adamw, bfloat16 copy", Form::kLowCopy, 30, adamw},
      {"adamw, bfloat16 weights and gradients", Form::kLowOnly, 22, adamw},
  };
  for (const Bench& bench : benches) {
    OptimizerTable table(true);
    table.set(tensors_of(counts, memory, bench.form), nullptr);
    const double seconds = median_seconds([&] { bench.run(table, {four, four + 1, four + 2, four + 3, 1}); });
    // A copy reads and writes each byte: half of them make the same traffic.
    const auto bytes = static_cast<double>(total(counts) * bench.bytes_per_element);
    constexpr int kDeviceToDevice = 3;
    const double copy_seconds = median_seconds([&] {
      cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes / 2), kDeviceToDevice, nullptr);
    });
    std::printf("%s, %s: %.1f us, %.0f GB/s; copy of the same bytes %.1f us, %.0f GB/s: %.0f %%\n", model,
                bench.name, seconds * 1e6, bytes / seconds * 1e-9, copy_seconds * 1e6,
                bytes / copy_seconds * 1e-9, 100 * copy_seconds / seconds);
    std::fflush(stdout);
  }
}

}  // namespace

TEST_CASE("optimizer bench: the models have the published number of parameters", "[kernels]") {
  REQUIRE(total(resnet50()) == 25557032);
  REQUIRE(resnet50().size() == 161);
  REQUIRE(total(gpt2()) == 124439808);
  REQUIRE(gpt2().size() == 148);
}

// Hidden: build/release/tests/test_kernels "[.bench]"
TEST_CASE("optimizer bench: steps beside a copy of the same bytes", "[.bench]") {
  if (!has_gpu()) GPUTRAIN_SKIP("needs a GPU");
  measure("ResNet-50", resnet50());
  measure("GPT-2 124M", gpt2());
}
