#pragma once

#include "device/capacity.h"
#include "device/device.h"
#include "device/machine.h"
#include "device/nvml.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::device {

struct Gpu {
  std::optional<int>
      index;  // N of cuda:N; absent: CUDA does not list it (driver, CUDA_VISIBLE_DEVICES, no CUDA)
  std::string name;
  std::string uuid;
  int capability = 0;  // 86 is 8.6; 0: unknown
  int multiprocessors = 0;
  std::optional<Capacity> memory;
  std::optional<NvmlFacts> nvml;  // absent: NVML is not there, or does not list it
};

// Where a run happens: env.json of a run directory, and what `doctor` looks at. Plain, so that tests write it
// by hand.
struct Environment {
  std::string gputrain;  // versions
  std::string libtorch;
  std::string libtorch_build;  // what LibTorch says of itself, several lines
  std::string cpu_capability;  // of LibTorch's CPU kernels: AVX2, AVX512
  CudaState cuda;
  std::vector<int> compiled_for;  // capabilities that this program's own kernels have code for
  std::string nvidia_driver;      // "580.65.06"; "": unknown
  std::string cudnn;              // "9.19.0"; "": not linked
  std::string nccl;               // "2.28.9"; "": not linked
  unsigned pid = 0;               // of the process that looked
  Machine machine;
  std::vector<Gpu> gpus;
  std::map<std::string, std::string> variables;  // set ones that change what LibTorch or CUDA does
};

// Looks at this machine. Starts CUDA on a GPU only where NVML cannot tell its free memory.
Environment inspect(const std::string& gputrain_version);

// The same from a simulated NVML; nullptr: there is none.
Environment inspect(const std::string& gputrain_version, Nvml* nvml);

// JSON, two spaces of indent, absent values left out, sizes in bytes.
std::string to_json(const Environment& environment);

}  // namespace gputrain::device
