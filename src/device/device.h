#pragma once

#include "base/error.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::device {

// What is known about CUDA here, without starting it on a GPU. Versions as CUDA writes them: 13000 is 13.0.
struct CudaState {
  bool built = false;                          // this program is linked with CUDA
  int runtime = 0;                             // the CUDA it was built with
  int driver = 0;                              // the newest CUDA the driver can run; 0: no driver
  std::vector<int> capabilities;               // of each GPU that CUDA lists: 86 is 8.6
  std::string error;                           // what CUDA says when it lists none
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES, when set
};

CudaState cuda_state();

// "13.0" for 13000.
std::string cuda_version_text(int version);

// "8.6" for 86.
std::string capability_text(int capability);

// The oldest driver series that runs this CUDA: 580 for 13.x.
int oldest_driver_for(int cuda_version);

// Whether a CUDA build of this version has code for GPUs of this capability.
bool runs_on_capability(int cuda_version, int capability);

// auto | cpu | cuda | cuda:N. `auto` is the first GPU that can be used, else the CPU. The result of a CUDA
// choice has an index. Throws Error(kUsage) saying what was found and what to do; starts nothing on the GPU.
at::Device choose_device(const std::string& spec);
at::Device choose_device(const std::string& spec, const CudaState& state);

// Why no GPU can be used, what was found and what to do, in one or two sentences; absent: one can be.
// Worth a notice where `auto` became the CPU on a machine that has an NVIDIA GPU.
std::optional<std::string> why_no_gpu(const CudaState& state);

// Makes `device` the one that this thread's CUDA calls mean, and starts CUDA on it. Nothing on the CPU.
// Each thread that touches the GPU calls it once.
void set_current(at::Device device);

// Whether operators of LibTorch must give the same bits each time; those that cannot throw then, which
// refused_operator() tells. Of the whole process; call it before CUDA starts, since it sets
// CUBLAS_WORKSPACE_CONFIG. Returns a notice where that was set to what cannot be kept.
std::vector<std::string> set_deterministic(bool on);

// The operator that threw `error` because it has no deterministic form; absent: `error` is another one.
std::optional<std::string> refused_operator(const std::exception& error);

// What to tell the user of it.
SettingError not_deterministic(const std::string& refused);

// Numerics and threads of the whole process; call once, before the first operation.
// tf32: matrix products and convolutions of float32 use TF32, or none of them does.
// cpu_threads: absent leaves what OMP_NUM_THREADS says, or without it LibTorch's own choice, but no more than
// the cores that this process may use.
// Returns notices: environment variables that overrule what was asked for, more threads than cores.
std::vector<std::string> configure(at::Device device, bool tf32, bool cudnn_benchmark,
                                   std::optional<std::int64_t> cpu_threads);

}  // namespace gputrain::device
