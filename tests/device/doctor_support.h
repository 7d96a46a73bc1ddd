#pragma once

#include "device/doctor.h"

#include <algorithm>
#include <string>

// Machines for the doctor to look at, and what it says of them.
namespace gputrain::testing {

using device::Diagnosis;
using device::Environment;
using device::Finding;
using Level = device::Finding::Level;

constexpr std::int64_t kGiB = 1LL << 30;

// A machine with nothing to complain about: one RTX 3060.
inline Environment healthy() {
  Environment environment;
  environment.gputrain = "1.2.3";
  environment.libtorch = "2.11.0";
  environment.cuda.built = true;
  environment.cuda.runtime = 13000;
  environment.cuda.driver = 13000;
  environment.cuda.capabilities = {86};
  environment.nvidia_driver = "580.65.06";
  environment.cudnn = "9.19.0";
  environment.nccl = "2.28.9";
  environment.pid = 77;
  environment.machine.cpu = "AMD Ryzen 5 5600X";
  environment.machine.cores = 12;
  environment.machine.memory = {32 * kGiB, 28 * kGiB};
  environment.machine.system = "Debian GNU/Linux 12 (bookworm)";
  environment.machine.kernel = "6.1.0";
  environment.machine.has_nvidia_gpu = true;
  device::Gpu gpu;
  gpu.index = 0;
  gpu.name = "NVIDIA GeForce RTX 3060";
  gpu.uuid = "GPU-1";
  gpu.capability = 86;
  gpu.memory = {12 * kGiB - kGiB / 2, 12 * kGiB};
  gpu.nvml = device::NvmlFacts();
  environment.gpus.push_back(gpu);
  return environment;
}

inline Environment without_gpu() {
  Environment environment = healthy();
  environment.cuda = {};
  environment.nvidia_driver = "";
  environment.cudnn = "";
  environment.gpus.clear();
  environment.machine.has_nvidia_gpu = false;
  return environment;
}

inline Diagnosis diagnose(const Environment& environment) {
  return device::diagnose(environment, device::Trial());
}

// The finding about `what`; one that found nothing when there is none.
inline Finding about(const Diagnosis& diagnosis, const std::string& what) {
  const auto found = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                  [&](const Finding& finding) { return finding.what == what; });
  return found == diagnosis.findings.end() ? Finding() : *found;
}

}  // namespace gputrain::testing
