#include "device/current_stream.h"

#include <c10/cuda/CUDAStream.h>

namespace gputrain::device {

// c10::Stream::native_handle() would do without CUDA's headers, but came only with LibTorch 2.11.
kernels::Stream current_stream(c10::Device device) {
  return c10::cuda::getCurrentCUDAStream(device.index()).stream();
}

}  // namespace gputrain::device
