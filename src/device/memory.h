#pragma once

#include "device/memory_reading.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace gputrain::device {

// From now on CPU tensors are counted. Call once at start, before the first tensor; later calls do nothing.
// Blocks made before it are not counted and are freed as ever.
void install_counting_allocator();

class MemorySource;

// Reads the memory of this process on one device. CUDA has been started on it (set_current).
// One meter per device: resetting resets the allocator's own peaks.
class MemoryMeter {
 public:
  explicit MemoryMeter(at::Device device);
  explicit MemoryMeter(std::unique_ptr<MemorySource> source);
  ~MemoryMeter();
  MemoryMeter(MemoryMeter&&) noexcept;
  MemoryMeter& operator=(MemoryMeter&&) noexcept;

  // with_driver: asks the driver (CPU: the kernel) anew, which takes tens of microseconds on some machines;
  // without it `device` is computed from reserved and the difference last seen.
  MemoryReading read(bool with_driver = true);

  // From now on so many bytes more are in use at times, in memory of graphs that the allocator does not count
  // as allocated (Graph::temporary_bytes).
  void count_graphs(std::int64_t bytes) { graph_bytes_ = bytes; }

  // Peaks count from now: each becomes the present value.
  void reset_peaks();

 private:
  void ask_driver(std::int64_t taken);
  std::int64_t within_all_time_peak(std::int64_t computed) const;

  std::unique_ptr<MemorySource> source_;
  std::optional<std::int64_t> beyond_;  // difference last seen: device - reserved (CPU: resident - allocated)
  bool is_estimate_ = false;
  std::int64_t device_peak_ = 0;
  std::int64_t graph_bytes_ = 0;
  std::int64_t ever_at_reset_ = 0;
};

// All the memory of the device: the GPU's, or the machine's (within the limit of its control group).
// Absent where it cannot be found out.
std::optional<std::int64_t> total_memory(at::Device device);

// Gives what the allocator keeps for later back to the device, and tells what is free there afterwards, for
// all processes. Waits for the device. Absent: unknown. CPU: nothing is kept, and nothing is told.
std::optional<std::int64_t> release_cached_memory(at::Device device);

// True for LibTorch's out-of-memory error on any device, its CPU allocator's, and std::bad_alloc.
bool is_out_of_memory(const std::exception& error);

// The text of an exception without the stack trace that LibTorch's carry.
std::string plain_text(const std::exception& error);

// What was asked for, free, allocated and reserved, as far as the error tells and the device can be asked
// now; one or two sentences for people, no stack trace. `limit`: of this process on the device
// (memory.limit).
std::string describe_out_of_memory(const std::exception& error, at::Device device,
                                   std::optional<std::int64_t> limit = std::nullopt);

}  // namespace gputrain::device
