// CUDAGraph's header includes the whole Tensor.h; only this file sees it.
#undef TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include "device/graph.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>

namespace gputrain::device {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// Memory is used again on the stream alone that it was first used on.
struct GraphMemory {
  c10::MempoolId_t pool;
  c10::cuda::CUDAStream stream;
};

GraphMemory new_memory(c10::Device device) {
  return {at::cuda::graph_pool_handle(),
          c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())};
}

const c10::CachingAllocator::Stat& allocated_bytes(const c10::CachingDeviceAllocator::DeviceStats& stats) {
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

}  // namespace

struct GraphParts {
  c10::Device device;
  GraphMemory memory;
  bool shares_memory;
  at::cuda::CUDAGraph graph{};
  std::int64_t temporary_bytes = 0;

  // Ends the recording. Throws c10::Error where CUDA has broken it off.
  void end() {
    try {
      graph.capture_end();
    } catch (const std::exception&) {
      static_cast<void>(cudaGetLastError());
      clean_up();
      throw;
    }
  }

  // Ends a recording in which something was thrown, and is on its way.
  void abandon() noexcept {
    try {
      end();
    } catch (const std::exception&) {  // as was to be expected
    }
  }

  // What capture_end() leaves undone where it throws. Where it throws because the recorded work cannot be
  // made ready to run, nothing is left undone, and the first call here throws.
  void clean_up() const noexcept {
    try {
      give_up_pool();
      reset_generator();
    } catch (const std::exception&) {
      static_cast<void>(cudaGetLastError());
    }
  }

  // Otherwise memory would stay taken, and the allocator's cache could not be emptied any more.
  void give_up_pool() const {
    allocator::endAllocateToPool(device.index(), memory.pool);
    allocator::releasePool(device.index(), memory.pool);
    const auto give_up_pinned = [&](auto* host) {
      if constexpr (requires { host->end_allocate_to_pool(memory.pool); }) {  // LibTorch before 2.10 has none
        host->end_allocate_to_pool(memory.pool);
        host->release_pool(memory.pool);
      }
    };
    give_up_pinned(at::getHostAllocator(at::kCUDA));
  }

  // The generator believes that it is still recorded, until a recording ends well.
  void reset_generator() const {
    at::cuda::CUDAGraph nothing;
    nothing.capture_begin();
    static_cast<void>(at::zeros({1}, at::TensorOptions(device)));
    nothing.capture_end();
  }
};

Graph::Graph(c10::Device device, const Graph* sharing)
    : parts_(new GraphParts{device, sharing != nullptr ? sharing->parts_->memory : new_memory(device),
                            sharing != nullptr}) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

void Graph::capture(const std::function<void()>& work) {
  GraphParts& parts = *parts_;
  const c10::DeviceIndex index = parts.device.index();
  const c10::cuda::CUDAGuard device(index);
  c10::cuda::device_synchronize();
  // cuBLAS keeps a workspace for each stream; that of the stream before comes back where it is used again.
  // Graphs that share memory share the stream, and so the workspace that is recorded.
  if (!parts.shares_memory) at::cuda::clearCublasWorkspaces();
  allocator::emptyCache();
  allocator::resetPeakStats(index);
  {
    const c10::cuda::CUDAStreamGuard stream(parts.memory.stream);
    parts.graph.capture_begin(parts.memory.pool);
    try {
      work();
    } catch (...) {
      parts.abandon();
      throw;
    }
    parts.end();
  }
  const c10::CachingAllocator::Stat held = allocated_bytes(allocator::getDeviceStats(index));
  parts.temporary_bytes = held.peak - held.current;
}

void Graph::replay() {
  parts_->graph.replay();
}

std::int64_t Graph::temporary_bytes() const {
  return parts_->temporary_bytes;
}

bool is_recording(c10::Device device) {
  if (!device.is_cuda()) return false;
  return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
}

}  // namespace gputrain::device
