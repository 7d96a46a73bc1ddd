#pragma once

#include <cstdint>

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

}  // namespace gputrain::device
