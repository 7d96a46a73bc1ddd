#pragma once

#include "device/capacity.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// NVIDIA's management library: what the driver knows about GPUs and who uses them. It comes with the driver
// and is opened at run time; nothing is linked, and asking it starts no CUDA.
namespace gputrain::device {

using NvmlDevice = struct nvmlDevice_st*;

struct GpuProcess {
  unsigned pid = 0;
  std::optional<std::int64_t> bytes;  // absent where the driver keeps no account (WSL)
  std::string name;                   // of the program, as far as /proc shows it
  bool computes = true;               // false: it draws windows or a screen, and does no CUDA work
};

// What NVML says of one GPU now. Absent: not reported for this GPU or driver.
struct NvmlFacts {
  std::string name;
  std::string uuid;
  std::optional<Capacity> memory;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  std::optional<double> default_power_limit_watts;
  std::optional<int> pcie_generation;  // now; falls when idle
  std::optional<int> pcie_generation_max;
  std::optional<int> pcie_width;
  std::optional<int> pcie_width_max;
  std::optional<bool> persistence_mode;  // the driver stays loaded while nothing uses the GPU
  std::optional<bool> display_attached;
  std::optional<bool> display_active;    // it draws a desktop, on a screen or not
  std::string driver_model;              // of Windows: WDDM, TCC or MCDM; "" elsewhere
  std::optional<int> performance_state;  // 0: full clocks, 8 and above: idle
  std::optional<int> clock_mhz;          // of the multiprocessors
  std::optional<int> clock_max_mhz;
  std::optional<int> temperature_celsius;
  std::optional<int> utilization_percent;
  std::vector<std::string> throttling;  // why the clocks are below what they could be; idling is no reason
  std::vector<GpuProcess> processes;    // each once; those that compute come first
};

// What NVML can do for us; simulated in tests.
class Nvml {
 public:
  virtual ~Nvml() = default;
  virtual std::string driver_version() = 0;   // "580.65.06", or "" when unknown
  virtual std::vector<NvmlDevice> all() = 0;  // CUDA_VISIBLE_DEVICES hides none of them

  // By UUID, else by PCI address; nullptr when NVML does not list it.
  virtual NvmlDevice find(const std::string& uuid, const std::string& pci_bus) = 0;
  virtual NvmlFacts facts(NvmlDevice gpu) = 0;

  // GPU memory of one process. Absent: the driver does not report it, as in some containers and under WSL.
  virtual std::optional<std::int64_t> process_bytes(NvmlDevice gpu, unsigned pid) = 0;
};

// The driver's own; nullptr where there is none.
std::unique_ptr<Nvml> open_nvml();

}  // namespace gputrain::device
