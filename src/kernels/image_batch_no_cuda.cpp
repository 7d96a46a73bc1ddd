#include "base/error.h"
#include "kernels/image_batch.h"

// Linked in place of image_batch_cuda.cu when CMake finds no CUDA toolkit or is told to build without one.

namespace gputrain::kernels {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      ExitCode::kUsage,
      "this gputrain was built without CUDA and trains on the CPU only; to use a GPU, configure it again "
      "with a CUDA toolkit (CMake preset `release`, or scripts/quickstart without --cpu)");
}

}  // namespace

void gather_images_cuda(const ImageGather&, Stream) {
  refuse();
}

void gather_labels_cuda(const std::uint8_t*, const std::int64_t*, std::int64_t, std::int64_t*, Stream) {
  refuse();
}

void gather_labels_cuda(const std::int64_t*, const std::int64_t*, std::int64_t, std::int64_t*, Stream) {
  refuse();
}

void fill_random_cuda(std::uint8_t*, std::int64_t, std::uint64_t, Stream) {
  refuse();
}

}  // namespace gputrain::kernels
