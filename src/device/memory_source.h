#pragma once

#include "device/memory_reading.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace gputrain::device {

// What an allocator counts.
struct AllocatorCounts {
  std::optional<std::int64_t> allocated;
  std::optional<std::int64_t> allocated_peak;
  std::optional<std::int64_t> reserved;
  std::optional<std::int64_t> reserved_peak;
};

// Where a MemoryMeter has its numbers from; simulated in tests.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual AllocatorCounts counts() = 0;

  // Bytes this process holds on the device, from the driver or the kernel. Absent: it does not say.
  virtual std::optional<std::int64_t> process_bytes() = 0;

  // Bytes in use on the device by all processes. Absent: unknown.
  virtual std::optional<std::int64_t> used_bytes() = 0;

  // The most this process held since it began, where that is known.
  virtual std::optional<std::int64_t> process_bytes_ever() = 0;

  virtual void reset_allocator_peaks() = 0;
};

std::unique_ptr<MemorySource> memory_source(at::Device device);

}  // namespace gputrain::device
