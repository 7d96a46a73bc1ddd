#include "profile/allocator.h"

#include "device/counting_allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace gputrain::profile {

Allocated allocated_now(c10::Device device) {
  if (device.is_cpu()) return {device::cpu_counts().now, 0};
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  // Active blocks, and not allocated ones: like what was asked for they count until the device is done.
  return {stats.allocated_bytes[kAll].current,
          stats.active_bytes[kAll].current - stats.requested_bytes[kAll].current};
}

}  // namespace gputrain::profile
