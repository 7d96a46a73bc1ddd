#include "profile/allocator.h"

#include <ATen/cuda/CUDAContextLight.h>

namespace gputrain::profile {

void release_workspaces(c10::Device device) {
  if (device.is_cuda()) at::cuda::clearCublasWorkspaces();
}

}  // namespace gputrain::profile
