#pragma once

#include <cstdint>
#include <optional>

namespace gputrain::device {

// Bytes held now and at most since the peaks were last reset. Absent: there is no such number here.
struct MemoryReading {
  std::optional<std::int64_t> allocated;  // tensors, by the caching (CPU: counting) allocator
  std::optional<std::int64_t> reserved;   // taken by the caching allocator; absent on the CPU
  std::optional<std::int64_t> device;     // the process as the driver sees it (CPU: resident memory)
  std::optional<std::int64_t> allocated_peak;
  std::optional<std::int64_t> reserved_peak;
  std::optional<std::int64_t> device_peak;
  bool device_is_estimate = false;  // the driver reports nothing for this process
};

}  // namespace gputrain::device
