#include "device/cuda_facts_compiled.h"

namespace gputrain::device {

// nvcc defines the list of all architectures of a compilation, as in 750,860.
std::vector<int> compiled_capabilities() {
  std::vector<int> capabilities;
  for (const int architecture : {__CUDA_ARCH_LIST__}) capabilities.push_back(architecture / 10);
  return capabilities;
}

}  // namespace gputrain::device
