#include "device/memory.h"

#include "device/cuda_facts.h"
#include "device/machine.h"
#include "device/memory_source.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <utility>

namespace gputrain::device {
namespace {

// What CUDA's context and the libraries' workspaces take at most, where the driver does not tell our share of
// the memory in use from that of others. Measured with LibTorch 2.11, cuDNN in use: 610 MiB on an H200, less
// on smaller GPUs.
constexpr std::int64_t kLargestContext = 640LL << 20;

}  // namespace

MemoryMeter::MemoryMeter(at::Device device) : MemoryMeter(memory_source(device)) {}
MemoryMeter::MemoryMeter(std::unique_ptr<MemorySource> source) : source_(std::move(source)) {
  reset_peaks();
}
MemoryMeter::~MemoryMeter() = default;
MemoryMeter::MemoryMeter(MemoryMeter&&) noexcept = default;
MemoryMeter& MemoryMeter::operator=(MemoryMeter&&) noexcept = default;

// What the process holds beyond what its allocator took.
void MemoryMeter::ask_driver(std::int64_t taken) {
  const std::optional<std::int64_t> bytes = source_->process_bytes();
  is_estimate_ = !bytes;
  if (bytes) {
    beyond_ = *bytes - taken;
    return;
  }
  const std::optional<std::int64_t> used = source_->used_bytes();
  beyond_ = used ? std::clamp<std::int64_t>(*used - taken, 0, kLargestContext) : kLargestContext;
}

MemoryReading MemoryMeter::read(bool with_driver) {
  const AllocatorCounts counts = source_->counts();
  const std::int64_t taken = counts.reserved ? *counts.reserved : counts.allocated.value_or(0);
  const std::int64_t taken_peak =
      counts.reserved_peak ? *counts.reserved_peak : counts.allocated_peak.value_or(taken);
  if (with_driver || !beyond_) ask_driver(taken);
  MemoryReading reading;
  reading.allocated = counts.allocated;
  reading.allocated_peak = counts.allocated_peak;
  if (graph_bytes_ > 0) {
    reading.allocated_peak =
        std::max(counts.allocated_peak.value_or(0), counts.allocated.value_or(0) + graph_bytes_);
  }
  reading.reserved = counts.reserved;
  reading.reserved_peak = counts.reserved_peak;
  reading.device = taken + *beyond_;
  device_peak_ = std::max({device_peak_, *reading.device, within_all_time_peak(taken_peak + *beyond_)});
  reading.device_peak = device_peak_;
  reading.device_is_estimate = is_estimate_;
  return reading;
}

// Where the kernel keeps the process's peak since it began, a new one is ours, and an old one is a bound.
std::int64_t MemoryMeter::within_all_time_peak(std::int64_t computed) const {
  const std::optional<std::int64_t> ever = source_->process_bytes_ever();
  if (!ever) return computed;
  return *ever > ever_at_reset_ ? *ever : std::min(computed, *ever);
}

void MemoryMeter::reset_peaks() {
  source_->reset_allocator_peaks();
  ever_at_reset_ = source_->process_bytes_ever().value_or(0);
  device_peak_ = 0;
}

std::optional<std::int64_t> total_memory(at::Device device) {
  if (device.is_cpu()) return machine_memory().total;
  const std::optional<CudaGpu> gpu = query_gpu(device.index());
  if (!gpu) return std::nullopt;
  return gpu->total_bytes;
}

std::optional<std::int64_t> release_cached_memory(at::Device device) {
  if (device.is_cpu()) return std::nullopt;
  c10::getDeviceAllocator(device.type())->emptyCache();
  const std::optional<Capacity> memory = query_gpu_memory(device.index());
  return memory ? std::optional(memory->free) : std::nullopt;
}

}  // namespace gputrain::device
