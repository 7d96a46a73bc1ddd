#pragma once

#include "device/capacity.h"

#include <cstdint>
#include <optional>
#include <string>

// The machine apart from its GPUs, as Linux tells it, within the limits of this process's control group.
namespace gputrain::device {

struct MachineMemory {
  std::int64_t total = 0;
  std::int64_t available = 0;  // without swapping
};

struct Machine {
  std::string cpu;  // model name, "" when the kernel does not say
  int cores = 0;    // that this process may use
  MachineMemory memory;
  std::string governor;          // of CPU frequency: "powersave" when any core has it; "" in most VMs
  std::string frequency_driver;  // who gives the governor's name its meaning: "intel_pstate"
  std::optional<Capacity> shared_memory;  // /dev/shm
  std::string system;                     // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;                     // "6.1.0-18-amd64"
  bool is_wsl = false;                    // Linux under Windows, which lends the GPU
  bool has_nvidia_gpu = false;  // on the PCI bus (or offered by WSL), whether there is a driver or not
  std::string nvidia_module;    // version of the driver's part in the kernel, "" when that is not loaded
};

// root: folder that holds /proc and /sys, "" for the real ones.
MachineMemory machine_memory(const std::string& root = "");

// Cores that this process may use: its affinity, and the quota of its control group, rounded up.
int usable_cores();

// root: folder that holds what is read of /proc, /sys, /etc, /dev and /usr, "" for the real ones.
Machine inspect_machine(const std::string& root = "");

}  // namespace gputrain::device
