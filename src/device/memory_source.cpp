#include "device/memory_source.h"

#include "device/counting_allocator.h"
#include "device/cuda_facts.h"
#include "device/nvml.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace gputrain::device {
namespace {

// Resident memory from /proc/self/statm, kept open: a reading takes about a microsecond.
class ResidentMemory {
 public:
  ResidentMemory() : file_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}
  ~ResidentMemory() {
    if (file_ >= 0) ::close(file_);
  }
  ResidentMemory(const ResidentMemory&) = delete;
  ResidentMemory& operator=(const ResidentMemory&) = delete;

  std::optional<std::int64_t> bytes() const {
    std::array<char, 128> text{};
    if (file_ < 0 || ::pread(file_, text.data(), text.size() - 1, 0) <= 0) return std::nullopt;
    char* second = nullptr;  // "size resident shared ...", in pages
    std::strtoll(text.data(), &second, 10);
    return std::strtoll(second, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
  }

 private:
  int file_;
};

class CpuSource final : public MemorySource {
 public:
  AllocatorCounts counts() override {
    const CpuCounts counts = cpu_counts();
    AllocatorCounts result;
    result.allocated = counts.now;
    result.allocated_peak = counts.peak;
    return result;
  }

  std::optional<std::int64_t> process_bytes() override { return resident_.bytes(); }
  std::optional<std::int64_t> used_bytes() override { return std::nullopt; }

  // The kernel's peak is left as it is (it could be reset): job schedulers and time(1) report it.
  std::optional<std::int64_t> process_bytes_ever() override {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
    return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  }

  void reset_allocator_peaks() override { reset_cpu_peak(); }

 private:
  ResidentMemory resident_;
};

class CudaSource final : public MemorySource {
 public:
  explicit CudaSource(at::Device device)
      : device_(device), allocator_(c10::getDeviceAllocator(device.type())), nvml_(open_nvml()) {
    // Makes the context now: before it exists, NVML does not list this process.
    static_cast<void>(query_gpu_memory(device.index()));
    const std::optional<CudaGpu> gpu = query_gpu(device.index());
    if (nvml_ && gpu) gpu_ = nvml_->find(gpu->uuid, gpu->pci_bus);
  }

  AllocatorCounts counts() override {
    const auto stats = allocator_->getDeviceStats(device_.index());
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    AllocatorCounts result;
    result.allocated = stats.allocated_bytes[kAll].current;
    result.allocated_peak = stats.allocated_bytes[kAll].peak;
    result.reserved = stats.reserved_bytes[kAll].current;
    result.reserved_peak = stats.reserved_bytes[kAll].peak;
    return result;
  }

  // Asked no more once the driver had no answer: containers and WSL stay as they are.
  std::optional<std::int64_t> process_bytes() override {
    if (gpu_ == nullptr) return std::nullopt;
    const std::optional<std::int64_t> bytes = nvml_->process_bytes(gpu_, static_cast<unsigned>(::getpid()));
    if (!bytes) gpu_ = nullptr;
    return bytes;
  }

  std::optional<std::int64_t> used_bytes() override {
    const std::optional<Capacity> memory = query_gpu_memory(device_.index());
    if (!memory) return std::nullopt;
    return memory->total - memory->free;
  }

  std::optional<std::int64_t> process_bytes_ever() override { return std::nullopt; }
  void reset_allocator_peaks() override { allocator_->resetPeakStats(device_.index()); }

 private:
  at::Device device_;
  c10::DeviceAllocator* allocator_;
  std::unique_ptr<Nvml> nvml_;
  NvmlDevice gpu_ = nullptr;
};

}  // namespace

std::unique_ptr<MemorySource> memory_source(at::Device device) {
  if (device.is_cpu()) return std::make_unique<CpuSource>();
  return std::make_unique<CudaSource>(device);
}

}  // namespace gputrain::device
