#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

// memory_cap_cuda.cpp speaks to LibTorch's caching allocator, memory_cap_no_cuda.cpp has none to speak to.
namespace gputrain::device {

// From now on, whenever the caching allocator of `gpu` is about to take memory from the driver, `cap` is
// asked how much it may have taken afterwards; what would be more fails as out of memory. `cap` is called
// with the allocator's lock held, and must make no tensor. An empty function ends this; no tensor is made
// meanwhile.
void cap_reserved_memory(c10::Device gpu, std::function<std::int64_t()> cap);

}  // namespace gputrain::device
