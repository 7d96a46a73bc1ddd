#include "device/cuda_facts.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>

namespace gputrain::device {
namespace {

// The runtime remembers the last error; whoever asks next would be told of ours.
bool succeeded(cudaError_t status) {
  if (status == cudaSuccess) return true;
  static_cast<void>(cudaGetLastError());
  return false;
}

int capability_of(int index) {
  int major = 0;
  int minor = 0;
  const bool known = succeeded(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index)) &&
                     succeeded(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index));
  return known ? 10 * major + minor : 0;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += hex.data();
  }
  return text;
}

std::string pci_text(const cudaDeviceProp& properties) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%08X:%02X:%02X.0", static_cast<unsigned>(properties.pciDomainID),
                static_cast<unsigned>(properties.pciBusID), static_cast<unsigned>(properties.pciDeviceID));
  return text.data();
}

}  // namespace

CudaState query_cuda() {
  CudaState state;
  state.built = true;
  succeeded(cudaRuntimeGetVersion(&state.runtime));
  succeeded(cudaDriverGetVersion(&state.driver));
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (!succeeded(status)) {
    state.error = cudaGetErrorString(status);
    return state;
  }
  for (int i = 0; i < count; ++i) state.capabilities.push_back(capability_of(i));
  return state;
}

std::optional<CudaGpu> query_gpu(int index) {
  cudaDeviceProp properties{};
  if (!succeeded(cudaGetDeviceProperties(&properties, index))) return std::nullopt;
  CudaGpu gpu;
  gpu.name = properties.name;
  gpu.uuid = uuid_text(properties.uuid);
  gpu.pci_bus = pci_text(properties);
  gpu.capability = 10 * properties.major + properties.minor;
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.total_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  return gpu;
}

std::optional<Capacity> query_gpu_memory(int index) {
  int before = 0;
  if (!succeeded(cudaGetDevice(&before)) || !succeeded(cudaSetDevice(index))) return std::nullopt;
  std::size_t free = 0;
  std::size_t total = 0;
  const bool known = succeeded(cudaMemGetInfo(&free, &total));
  succeeded(cudaSetDevice(before));
  if (!known) return std::nullopt;
  return Capacity{static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

}  // namespace gputrain::device
