#pragma once

#include <cstdint>
#include <functional>

// The CPU allocator that keeps count. It wraps the one LibTorch had, and hands out that one's blocks
// unchanged.
namespace gputrain::device {

// Bytes that were asked for, without the allocator's own rounding. Zeros before install_counting_allocator.
struct CpuCounts {
  std::int64_t now = 0;
  std::int64_t peak = 0;
};

CpuCounts cpu_counts();
void reset_cpu_peak();

// From now on, before more is handed out than ever since, `cap` is asked how much may be; what would be more
// fails as it does where the machine has no memory left. `cap` is called by one thread at a time, and makes
// no tensor. An empty function ends this; no tensor is made meanwhile.
void cap_cpu_memory(std::function<std::int64_t()> cap);

}  // namespace gputrain::device
