#pragma once

#include "device/memory_reading.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace gputrain::device {

// Throws SettingError for a memory.limit of more than the device has. Starts no CUDA on it.
void check_memory_limit(c10::Device device, std::int64_t bytes);

// What an allocator may hold (CUDA: reserve) so that the process stays `margin` below `limit`: what is left
// of it beside everything else that the process holds. Not below 0.
std::int64_t allocator_cap(const MemoryReading& reading, std::int64_t limit, std::int64_t margin);

// Keeps this process below a number of bytes on one device, as the driver sees it (CPU: resident memory): a
// tensor that would go beyond it fails as out of memory. What the process holds beside its tensors (context,
// kernels, graphs, workspaces of libraries) is measured each time the allocator grows. It may still grow
// between two such times, for which a margin is kept. At most one in a process.
class MemoryLimit {
 public:
  // CUDA has been started on `device` (set_current); on the CPU, install_counting_allocator() was called.
  // Throws SettingError for a memory.limit of less than the process already holds there.
  MemoryLimit(c10::Device device, std::int64_t bytes);
  ~MemoryLimit();  // lifts it; no other thread makes tensors any more
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  std::int64_t bytes() const;

  // The first steps are over, and libraries have loaded what they need: the margin may be small.
  void settle();

  // `reading` asked the driver. Where the process holds more than it may, memory that the allocator keeps for
  // later is given back; the first time, this returns a sentence that says so.
  std::optional<std::string> check(const MemoryReading& reading);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gputrain::device
