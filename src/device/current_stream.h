#pragma once

#include "kernels/stream.h"

#include <c10/core/Device.h>

namespace gputrain::device {

// The stream that LibTorch's next operation on `device` (cuda:N) would be queued on, for our kernels to keep
// the order with it. Throws Error(kUsage) in a build without CUDA.
kernels::Stream current_stream(c10::Device device);

}  // namespace gputrain::device
