#pragma once

#include <cstdint>
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
  std::string system;  // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;  // "6.1.0-18-amd64"
  bool is_wsl = false;
  bool has_nvidia_gpu = false;  // on the PCI bus (or offered by WSL), whether there is a driver or not
};

// root: folder that holds /proc and /sys, "" for the real ones.
MachineMemory machine_memory(const std::string& root = "");

// Cores that this process may use: its affinity, and the quota of its control group, rounded up.
int usable_cores();

Machine inspect_machine();

}  // namespace gputrain::device
