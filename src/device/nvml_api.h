#pragma once

#include "device/nvml.h"

#include <memory>

// The few functions of libnvidia-ml.so.1 in use, declared here because its header does not come with every
// CUDA toolkit. Names, types and numbers are those of nvml.h, whose binary interface NVIDIA keeps.
namespace gputrain::device {

constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
constexpr int kNvmlClockOfMultiprocessors = 1;
constexpr unsigned kNvmlUnknownPerformanceState = 32;
constexpr unsigned long long kNvmlNotAvailable = ~0ULL;

struct NvmlMemory {
  unsigned long long total, free, used;
};

struct NvmlUtilization {
  unsigned gpu, memory;
};

struct NvmlProcessInfo {
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance, compute_instance;
};

// Null: this driver lacks the function. Only init and by_index are needed.
struct NvmlApi {
  using GetUnsigned = int (*)(NvmlDevice, unsigned*);
  using GetText = int (*)(NvmlDevice, char*, unsigned);
  using GetClock = int (*)(NvmlDevice, int clock, unsigned*);
  using ListProcesses = int (*)(NvmlDevice, unsigned* count, NvmlProcessInfo*);

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, NvmlDevice*) = nullptr;
  int (*by_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*by_pci_bus)(const char*, NvmlDevice*) = nullptr;
  GetText name = nullptr;
  GetText uuid = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*temperature)(NvmlDevice, int sensor, unsigned*) = nullptr;
  int (*throttle_reasons)(NvmlDevice, unsigned long long*) = nullptr;
  ListProcesses compute_processes = nullptr;
  ListProcesses graphics_processes = nullptr;
  GetUnsigned power_milliwatts = nullptr;
  GetUnsigned power_limit_milliwatts = nullptr;
  GetUnsigned default_power_limit_milliwatts = nullptr;
  GetUnsigned pcie_generation = nullptr;
  GetUnsigned pcie_generation_max = nullptr;
  GetUnsigned pcie_width = nullptr;
  GetUnsigned pcie_width_max = nullptr;
  GetUnsigned persistence_mode = nullptr;  // 0 or 1, as the two below
  GetUnsigned display_attached = nullptr;
  GetUnsigned display_active = nullptr;
  int (*driver_model)(NvmlDevice, unsigned* current, unsigned* pending) = nullptr;
  GetUnsigned performance_state = nullptr;
  GetClock clock_mhz = nullptr;
  GetClock clock_max_mhz = nullptr;
};

// Calls init; nullptr when that fails. The result calls shutdown when it ends.
std::unique_ptr<Nvml> make_nvml(const NvmlApi& api);

}  // namespace gputrain::device
