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

// Makes `whole` cover `part` too: the present values of `part`, the larger peaks.
inline void extend(MemoryReading& whole, const MemoryReading& part) {
  const auto raise = [](std::optional<std::int64_t>& peak, const std::optional<std::int64_t>& value) {
    if (value && (!peak || *peak < *value)) peak = value;
  };
  raise(whole.allocated_peak, part.allocated_peak);
  raise(whole.reserved_peak, part.reserved_peak);
  raise(whole.device_peak, part.device_peak);
  whole.allocated = part.allocated;
  whole.reserved = part.reserved;
  whole.device = part.device;
  whole.device_is_estimate = whole.device_is_estimate || part.device_is_estimate;
}

}  // namespace gputrain::device
