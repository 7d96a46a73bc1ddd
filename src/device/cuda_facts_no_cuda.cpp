#include "device/cuda_facts.h"
#include "device/cuda_facts_compiled.h"

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

std::vector<int> compiled_capabilities() {
  return {};
}

}  // namespace gputrain::device
