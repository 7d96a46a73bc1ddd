#pragma once

#include "device/capacity.h"
#include "device/device.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What only the CUDA runtime can tell. cuda_facts_cuda.cpp asks it, cuda_facts_no_cuda.cpp knows nothing.
namespace gputrain::device {

struct CudaGpu {
  std::string name;
  std::string uuid;     // as NVML writes it: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
  std::string pci_bus;  // 00000000:65:00.0
  int capability = 0;   // 86 is 8.6
  int multiprocessors = 0;
  std::int64_t total_bytes = 0;
};

// All of CudaState but the environment. Throws nothing and leaves no CUDA error behind.
CudaState query_cuda();

// The facts of GPU `index`; starts no context. Absent when there is no such GPU.
std::optional<CudaGpu> query_gpu(int index);

// Memory of the whole GPU, by all processes; starts a context there when there is none. Absent when it fails.
std::optional<Capacity> query_gpu_memory(int index);

}  // namespace gputrain::device
