#include "device/cuda_facts.h"
#include "device/memory_cap.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace gputrain::device {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

struct Cap {
  c10::DeviceIndex gpu;
  double device_bytes;
  std::function<std::int64_t()> bytes;
};

// Asked with the allocator's lock held, by whichever thread makes a tensor.
std::atomic<Cap*> in_force{nullptr};

// LibTorch knows a limit as a fraction alone, up to 2.9 of what cudaMemGetInfo calls all memory, later of
// what the properties of the GPU do: of the larger, so that the limit is never above what was meant.
double all_memory(c10::DeviceIndex gpu) {
  const std::optional<CudaGpu> facts = query_gpu(gpu);
  const std::optional<Capacity> memory = query_gpu_memory(gpu);
  return static_cast<double>(std::max(facts ? facts->total_bytes : 0, memory ? memory->total : 0));
}

// The allocator calls this before it asks the driver for more: nothing is freed, and the limit is as it
// should be now.
class AskForCap final : public c10::FreeMemoryCallback {
 public:
  bool Execute() override {
    if (const Cap* cap = in_force.load()) {
      const double fraction = static_cast<double>(cap->bytes()) / cap->device_bytes;
      allocator::setMemoryFraction(std::clamp(fraction, 0.0, 1.0), cap->gpu);
    }
    return false;
  }
};

void register_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::FreeCudaMemoryCallbacksRegistry()->Register("gputrain.memory_limit",
                                                     [] { return std::make_unique<AskForCap>(); });
  });
}

}  // namespace

void cap_reserved_memory(c10::Device gpu, std::function<std::int64_t()> cap) {
  register_once();
  auto made =
      cap ? std::make_unique<Cap>(Cap{gpu.index(), all_memory(gpu.index()), std::move(cap)}) : nullptr;
  if (!made) allocator::setMemoryFraction(1, gpu.index());
  delete in_force.exchange(made.release());
  AskForCap().Execute();  // once at least, for an allocator that does not call it (cudaMallocAsync)
}

}  // namespace gputrain::device
