#include "base/error.h"
#include "kernels/optimizer_step_table.h"

// Linked in place of optimizer_step_cuda.cu when CMake finds no CUDA toolkit or is told to build without one.

namespace gputrain::kernels {

std::unique_ptr<OptimizerSteps> optimizer_steps_cuda() {
  throw Error(
      ExitCode::kUsage,
      "this gputrain was built without CUDA and trains on the CPU only; to use a GPU, configure it again "
      "with a CUDA toolkit (CMake preset `release`, or scripts/quickstart without --cpu)");
}

}  // namespace gputrain::kernels
