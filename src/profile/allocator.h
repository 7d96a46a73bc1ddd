#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace gputrain::profile {

// What the allocator of a device has handed out, and how much of it is rounding: blocks are larger than what
// was asked for. Zeros on a CPU before device::install_counting_allocator.
struct Allocated {
  std::int64_t bytes = 0;
  std::int64_t rounding = 0;
};
Allocated allocated_now(c10::Device device);

// Gives back what cuBLAS keeps from call to call, for all threads and streams; the next call takes it anew.
// Nothing on a CPU. Not while the work of another thread is being queued, or where graphs know its address.
void release_workspaces(c10::Device device);

}  // namespace gputrain::profile
