#include "device/memory.h"

#include "device/cuda_facts.h"
#include "device/device.h"
#include "device/machine.h"
#include "device/memory_source.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

using gputrain::device::AllocatorCounts;
using gputrain::device::MemoryMeter;
using gputrain::device::MemoryReading;
using gputrain::device::MemorySource;

namespace {

constexpr std::int64_t kMiB = 1 << 20;
const at::Device kGpu(at::kCUDA, 0);

struct Simulated {
  AllocatorCounts counts;
  std::optional<std::int64_t> process;
  std::optional<std::int64_t> used;
  std::optional<std::int64_t> ever;
  int asked = 0;
};

class SimulatedSource final : public MemorySource {
 public:
  explicit SimulatedSource(Simulated& numbers) : numbers_(numbers) {}
  AllocatorCounts counts() override { return numbers_.counts; }
  std::optional<std::int64_t> process_bytes() override {
    ++numbers_.asked;
    return numbers_.process;
  }
  std::optional<std::int64_t> used_bytes() override { return numbers_.used; }
  std::optional<std::int64_t> process_bytes_ever() override { return numbers_.ever; }
  void reset_allocator_peaks() override {
    numbers_.counts.allocated_peak = numbers_.counts.allocated;
    numbers_.counts.reserved_peak = numbers_.counts.reserved;
  }

 private:
  Simulated& numbers_;
};

// Earlier cases of this process leave blocks that a new tensor would take.
void start_gpu_with_empty_cache() {
  gputrain::device::set_current(kGpu);
  c10::getDeviceAllocator(at::kCUDA)->emptyCache();
}

MemoryMeter meter_of(Simulated& numbers) {
  return MemoryMeter(std::make_unique<SimulatedSource>(numbers));
}

void set_reserved(Simulated& numbers, std::int64_t now, std::int64_t peak) {
  numbers.counts = {now / 2, peak / 2, now, peak};
}

}  // namespace

TEST_CASE("meter: memory of graphs in use at times counts in the peak of what is allocated", "[device]") {
  Simulated numbers;
  numbers.counts = {100 * kMiB, 130 * kMiB, 300 * kMiB, 300 * kMiB};
  MemoryMeter meter(std::make_unique<SimulatedSource>(numbers));
  meter.count_graphs(50 * kMiB);
  numbers.counts.allocated_peak = 130 * kMiB;
  CHECK(meter.read().allocated_peak == 150 * kMiB);
  CHECK(meter.read().allocated == 100 * kMiB);
  numbers.counts.allocated_peak = 170 * kMiB;  // work beside the graphs
  CHECK(meter.read().allocated_peak == 170 * kMiB);
}

TEST_CASE("memory: the peak of device is the peak of reserved plus what is held beside it", "[device]") {
  Simulated numbers;
  numbers.process = 700 * kMiB;
  MemoryMeter meter = meter_of(numbers);
  set_reserved(numbers, 100 * kMiB, 400 * kMiB);
  const MemoryReading reading = meter.read();
  CHECK(reading.allocated == 50 * kMiB);
  CHECK(reading.allocated_peak == 200 * kMiB);
  CHECK(reading.reserved == 100 * kMiB);
  CHECK(reading.reserved_peak == 400 * kMiB);
  CHECK(reading.device == 700 * kMiB);
  CHECK(reading.device_peak == 1000 * kMiB);
  CHECK_FALSE(reading.device_is_estimate);
}

TEST_CASE("memory: without the driver, device follows reserved by the difference last seen", "[device]") {
  Simulated numbers;
  numbers.process = 700 * kMiB;
  MemoryMeter meter = meter_of(numbers);
  set_reserved(numbers, 100 * kMiB, 100 * kMiB);
  meter.read();
  set_reserved(numbers, 150 * kMiB, 150 * kMiB);
  CHECK(meter.read(false).device == 750 * kMiB);
  CHECK(numbers.asked == 1);
  numbers.process = 760 * kMiB;
  CHECK(meter.read(true).device == 760 * kMiB);
  CHECK(numbers.asked == 2);
}

TEST_CASE("memory: the first reading asks the driver, whatever the caller says", "[device]") {
  Simulated numbers;
  numbers.process = 700 * kMiB;
  MemoryMeter meter = meter_of(numbers);
  set_reserved(numbers, 100 * kMiB, 100 * kMiB);
  CHECK(meter.read(false).device == 700 * kMiB);
}

TEST_CASE("memory: resetting makes each peak the present value", "[device]") {
  Simulated numbers;
  numbers.process = 700 * kMiB;
  MemoryMeter meter = meter_of(numbers);
  set_reserved(numbers, 100 * kMiB, 400 * kMiB);
  meter.read();
  meter.reset_peaks();
  const MemoryReading reading = meter.read();
  CHECK(reading.reserved_peak == 100 * kMiB);
  CHECK(reading.device_peak == 700 * kMiB);
}

TEST_CASE("memory: where the driver reports nothing, device is an estimate from the memory in use",
          "[device]") {
  Simulated numbers;
  numbers.used = 350 * kMiB;
  MemoryMeter meter = meter_of(numbers);
  set_reserved(numbers, 100 * kMiB, 200 * kMiB);
  const MemoryReading reading = meter.read();
  CHECK(reading.device == 350 * kMiB);
  CHECK(reading.device_peak == 450 * kMiB);
  CHECK(reading.device_is_estimate);
}

TEST_CASE("memory: the estimate does not take other processes' memory for ours", "[device]") {
  Simulated numbers;
  numbers.used = 9000 * kMiB;
  MemoryMeter meter = meter_of(numbers);
  set_reserved(numbers, 100 * kMiB, 100 * kMiB);
  CHECK(meter.read().device == 740 * kMiB);
}

TEST_CASE("memory: resident memory never peaks above what the kernel has seen", "[device]") {
  Simulated numbers;
  numbers.process = 500 * kMiB;
  numbers.ever = 520 * kMiB;
  MemoryMeter meter = meter_of(numbers);
  numbers.counts = {100 * kMiB, 300 * kMiB, std::nullopt, std::nullopt};
  const MemoryReading reading = meter.read();
  CHECK(reading.device == 500 * kMiB);
  CHECK(reading.device_peak == 520 * kMiB);
  CHECK_FALSE(reading.reserved.has_value());
}

TEST_CASE("memory: a new peak of the kernel's is the peak since the reset", "[device]") {
  Simulated numbers;
  numbers.process = 500 * kMiB;
  numbers.ever = 520 * kMiB;
  MemoryMeter meter = meter_of(numbers);
  numbers.counts = {100 * kMiB, 100 * kMiB, std::nullopt, std::nullopt};
  numbers.ever = 800 * kMiB;
  CHECK(meter.read().device_peak == 800 * kMiB);
}

TEST_CASE("memory: on the CPU, allocated is counted and device is resident memory", "[device]") {
  gputrain::device::install_counting_allocator();
  MemoryMeter meter{at::Device(at::kCPU)};
  const MemoryReading before = meter.read();
  const at::Tensor block = at::ones({64 * kMiB / 4});
  const MemoryReading after = meter.read();
  CHECK(*after.allocated == *before.allocated + 64 * kMiB);
  CHECK_FALSE(after.reserved.has_value());
  CHECK_FALSE(after.reserved_peak.has_value());
  CHECK_FALSE(after.device_is_estimate);
  // Touched pages are resident; some slack for what else the process did.
  CHECK(*after.device - *before.device > 60 * kMiB);
  CHECK(*after.device - *before.device < 80 * kMiB);
}

TEST_CASE("memory: on the CPU, the peak outlives the tensor that made it", "[device]") {
  gputrain::device::install_counting_allocator();
  MemoryMeter meter{at::Device(at::kCPU)};
  const MemoryReading before = meter.read();
  { const at::Tensor gone = at::ones({64 * kMiB / 4}); }
  const MemoryReading after = meter.read();
  CHECK(*after.allocated == *before.allocated);
  CHECK(*after.allocated_peak == *before.allocated + 64 * kMiB);
  CHECK(*after.device_peak >= *before.device + 60 * kMiB);
}

TEST_CASE("memory: total memory of the CPU is what meminfo and the control group allow", "[device]") {
  const auto total = gputrain::device::total_memory(at::Device(at::kCPU));
  REQUIRE(total.has_value());
  CHECK(*total > 100 * kMiB);
  const auto memory = gputrain::device::machine_memory();
  CHECK(memory.total == *total);
  CHECK(memory.available > 0);
  CHECK(memory.available <= memory.total);
}

TEST_CASE("memory: a GPU's allocator and the driver agree on a large tensor", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu_with_empty_cache();
  MemoryMeter meter(kGpu);
  at::empty({1}, at::TensorOptions(kGpu));
  const MemoryReading before = meter.read();
  const auto free_before = gputrain::device::query_gpu_memory(0);
  const at::Tensor block = at::empty({256 * kMiB}, at::TensorOptions(kGpu).dtype(at::kByte));
  const MemoryReading after = meter.read();
  const auto free_after = gputrain::device::query_gpu_memory(0);
  CHECK(*after.allocated - *before.allocated == 256 * kMiB);
  CHECK(*after.reserved - *before.reserved == 256 * kMiB);
  CHECK(*after.device >= *after.reserved);
  CHECK(std::abs(*after.device - *before.device - 256 * kMiB) <= 4 * kMiB);
  CHECK(std::abs(free_before->free - free_after->free - 256 * kMiB) <= 4 * kMiB);
  CHECK(*gputrain::device::total_memory(kGpu) > *after.device);
}

TEST_CASE("memory: a GPU's peaks outlive the tensor and end with a reset", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  start_gpu_with_empty_cache();
  MemoryMeter meter(kGpu);
  const MemoryReading before = meter.read();
  { const at::Tensor gone = at::empty({256 * kMiB}, at::TensorOptions(kGpu).dtype(at::kByte)); }
  CHECK(*meter.read().allocated_peak == *before.allocated + 256 * kMiB);
  CHECK(*meter.read().device_peak >= *before.device + 252 * kMiB);
  meter.reset_peaks();
  CHECK(*meter.read().allocated_peak == *before.allocated);
}

TEST_CASE("memory: a GPU reading without the driver takes less than 50 microseconds", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  gputrain::device::set_current(kGpu);
  MemoryMeter meter(kGpu);
  meter.read();
  const auto microseconds = [&](bool with_driver) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) meter.read(with_driver);
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 200;
  };
  std::printf("memory reading: %.1f us, with the driver %.1f us%s\n", microseconds(false), microseconds(true),
              meter.read().device_is_estimate ? " (estimate)" : "");
  CHECK(microseconds(false) < 50);
}
