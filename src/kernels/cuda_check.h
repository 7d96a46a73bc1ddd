#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace gputrain::kernels {

// A call of the CUDA runtime or the launch of a kernel failed.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t status, const std::string& what)
      : std::runtime_error(what + " failed: " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) +
                           ")"),
        status_(status) {}
  cudaError_t status() const { return status_; }

 private:
  cudaError_t status_;
};

// Throws CudaError unless `status` is cudaSuccess. `what` names the call: "cudaMemcpy of labels".
inline void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw CudaError(status, what);
}

// To be called right after a launch: reports what the launch itself got wrong (a faulty grid, no code for
// this GPU) and takes the error off the runtime's record. Errors inside the kernel surface at a later call.
inline void check_launch(const char* kernel) {
  check_cuda(cudaGetLastError(), kernel);
}

}  // namespace gputrain::kernels
