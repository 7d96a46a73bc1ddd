#include "device/cuda_facts.h"

namespace gputrain::device {

CudaState query_cuda() {
  return {};
}

std::optional<CudaGpu> query_gpu(int) {
  return std::nullopt;
}

std::optional<Capacity> query_gpu_memory(int) {
  return std::nullopt;
}

}  // namespace gputrain::device
