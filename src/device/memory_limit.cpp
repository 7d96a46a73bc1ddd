#include "device/memory_limit.h"

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "device/counting_allocator.h"
#include "device/memory.h"
#include "device/memory_cap.h"
#include "device/memory_source.h"

#include <algorithm>
#include <atomic>
#include <malloc.h>

namespace gputrain::device {
namespace {

// What grows beside the allocator after its last growth: kernels and libraries that are loaded when they are
// first used, at first many, later few.
struct Margins {
  std::int64_t first;
  std::int64_t later;
};

Margins margins(c10::Device device) {
  constexpr std::int64_t kMiB = 1 << 20;
  return device.is_cpu() ? Margins{48 * kMiB, 16 * kMiB} : Margins{128 * kMiB, 32 * kMiB};
}

// What the process holds now is there before training, and a limit takes none of it away.
void check_held(c10::Device device, std::int64_t bytes, std::int64_t held) {
  const std::int64_t least = held + margins(device).first;
  if (bytes >= least) return;
  throw SettingError("memory.limit",
                     concat("is ", format_bytes(bytes), ", and before training this process holds ",
                            format_bytes(held), " on ", device.str(), device.is_cuda() ? " for CUDA" : "",
                            "; expected more than ", format_bytes(least), ", or ~"));
}

}  // namespace

void check_memory_limit(c10::Device device, std::int64_t bytes) {
  const std::optional<std::int64_t> total = total_memory(device);
  if (!total || bytes <= *total) return;
  throw SettingError("memory.limit", concat("is ", format_bytes(bytes), ", and ", device.str(), " has ",
                                            format_bytes(*total), "; expected at most that, or ~"));
}

std::int64_t allocator_cap(const MemoryReading& reading, std::int64_t limit, std::int64_t margin) {
  const std::int64_t taken = reading.reserved.value_or(reading.allocated.value_or(0));
  const std::int64_t beyond = std::max<std::int64_t>(reading.device.value_or(taken) - taken, 0);
  return std::max<std::int64_t>(limit - margin - beyond, 0);
}

struct MemoryLimit::State {
  State(c10::Device where, std::int64_t limit)
      : device(where), bytes(limit), meter(where), margin(margins(where).first) {}

  MemoryReading read() {
    MemoryReading reading = meter.read();
    if (reading.device) *reading.device -= reusable_bytes();
    return reading;
  }

  // On the CPU, what was freed and is still resident is used again before the process grows.
  std::int64_t reusable_bytes() const {
    if (!device.is_cpu()) return 0;
    return std::max<std::int64_t>(static_cast<std::int64_t>(::mallinfo2().fordblks) - trimmed, 0);
  }

  std::int64_t cap() { return allocator_cap(read(), bytes, margin); }

  // `held`: what the process holds.
  void release(std::int64_t held) {
    if (!device.is_cpu()) {
      release_cached_memory(device);
      return;
    }
    ::malloc_trim(0);
    // Counted as free as before, and not resident any more.
    trimmed += std::max<std::int64_t>(held - memory_source(device)->process_bytes().value_or(held), 0);
  }

  c10::Device device;
  std::int64_t bytes;
  MemoryMeter meter;  // once the limit holds, used with the allocator's lock held alone
  std::atomic<std::int64_t> margin;
  std::atomic<std::int64_t> trimmed{0};
  bool was_exceeded = false;
};

MemoryLimit::MemoryLimit(c10::Device device, std::int64_t bytes) {
  state_ = std::make_unique<State>(device, bytes);
  check_held(device, bytes, state_->read().device.value_or(0));
  const auto cap = [state = state_.get()] { return state->cap(); };
  if (device.is_cpu()) {
    cap_cpu_memory(cap);
  } else {
    cap_reserved_memory(device, cap);
  }
}

MemoryLimit::~MemoryLimit() {
  if (state_->device.is_cpu()) {
    cap_cpu_memory({});
  } else {
    cap_reserved_memory(state_->device, {});
  }
}

std::int64_t MemoryLimit::bytes() const {
  return state_->bytes;
}

void MemoryLimit::settle() {
  state_->margin = margins(state_->device).later;
}

std::optional<std::string> MemoryLimit::check(const MemoryReading& reading) {
  const std::int64_t held = reading.device.value_or(0);
  if (held <= state_->bytes) return std::nullopt;
  state_->release(held);
  if (state_->was_exceeded) return std::nullopt;
  state_->was_exceeded = true;
  return concat("memory.limit: this process holds ", format_bytes(held), " on ", state_->device.str(),
                ", which is above ", format_bytes(state_->bytes),
                ", since libraries took memory beside the tensors; what was kept for later was given back");
}

}  // namespace gputrain::device
