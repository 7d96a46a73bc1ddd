#include "device/memory_limit.h"

#include "base/error.h"
#include "device/allocator_settings.h"
#include "device/counting_allocator.h"
#include "device/device.h"
#include "device/memory.h"
#include "device/memory_history.h"
#include "device/memory_source.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstdlib>
#include <malloc.h>
#include <optional>
#include <vector>

using namespace gputrain;
using device::MemoryLimit;
using device::MemoryReading;

namespace {

constexpr std::int64_t kMiB = 1 << 20;
const at::Device kCpu(at::kCPU);
const at::Device kGpu(at::kCUDA, 0);

MemoryReading reading(std::optional<std::int64_t> allocated, std::optional<std::int64_t> reserved,
                      std::optional<std::int64_t> on_device) {
  MemoryReading made;
  made.allocated = allocated;
  made.reserved = reserved;
  made.device = on_device;
  return made;
}

std::int64_t held(at::Device where) {
  return device::memory_source(where)->process_bytes().value_or(0);
}

// Memory that is really taken: every page is written.
at::Tensor block(std::int64_t mebibytes, at::Device where = kCpu) {
  return at::ones({mebibytes * kMiB}, at::TensorOptions(where).dtype(at::kByte));
}

// What making the tensor says of memory; "" where it can be made.
std::string refusal(std::int64_t mebibytes, at::Device where, std::optional<std::int64_t> limit) {
  try {
    static_cast<void>(block(mebibytes, where));
  } catch (const std::exception& error) {
    CHECK(device::is_out_of_memory(error));
    return device::describe_out_of_memory(error, where, limit);
  }
  return "";
}

std::string problem_of(at::Device where, std::int64_t bytes) {
  try {
    const MemoryLimit limit(where, bytes);
  } catch (const SettingError& error) {
    CHECK(error.key() == "memory.limit");
    return error.what();
  }
  return "";
}

// A limit that leaves about so many MiB to further tensors, its first margin taken off. What earlier cases
// freed is used again.
std::int64_t with_room(at::Device where, std::int64_t mebibytes) {
  const std::int64_t freed = where.is_cpu() ? static_cast<std::int64_t>(::mallinfo2().fordblks) : 0;
  return held(where) - freed + (mebibytes + (where.is_cpu() ? 48 : 128)) * kMiB;
}

}  // namespace

TEST_CASE("memory limit: the allocator may have what the process holds nothing else of", "[device]") {
  // 100 MiB are held beside 300 MiB of the allocator.
  CHECK(device::allocator_cap(reading(200 * kMiB, 300 * kMiB, 400 * kMiB), 1000 * kMiB, 50 * kMiB) ==
        850 * kMiB);
  CHECK(device::allocator_cap(reading(200 * kMiB, std::nullopt, 400 * kMiB), 1000 * kMiB, 0) == 800 * kMiB);
  // Tensors whose pages were never written are not resident.
  CHECK(device::allocator_cap(reading(500 * kMiB, std::nullopt, 400 * kMiB), 1000 * kMiB, 0) == 1000 * kMiB);
  CHECK(device::allocator_cap(reading(0, 0, 400 * kMiB), 300 * kMiB, 50 * kMiB) == 0);
}

TEST_CASE("memory limit: more than the device has, or less than the process holds, is refused", "[device]") {
  device::install_counting_allocator();
  const std::int64_t total = *device::total_memory(kCpu);
  device::check_memory_limit(kCpu, total);
  CHECK_THROWS_WITH(device::check_memory_limit(kCpu, 1LL << 50),
                    ContainsSubstring("memory.limit is 1024.0 TiB, and cpu has ") &&
                        ContainsSubstring("; expected at most that, or ~"));
  CHECK_THAT(problem_of(kCpu, kMiB),
             ContainsSubstring("memory.limit is 1.0 MiB, and before training this process holds ") &&
                 ContainsSubstring(" on cpu; expected more than "));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these keep what is freed
TEST_CASE("memory limit: a tensor beyond it fails as out of memory, and is made once it is lifted",
          "[device]") {
  device::install_counting_allocator();
  {
    const std::int64_t bytes = with_room(kCpu, 100);
    const MemoryLimit limit(kCpu, bytes);
    CHECK(limit.bytes() == bytes);
    CHECK(refusal(40, kCpu, bytes).empty());
    const std::string said = refusal(200, kCpu, bytes);
    CHECK_THAT(said, ContainsSubstring("out of memory on cpu: 200.0 MiB were asked for, memory.limit is ") &&
                         ContainsSubstring(", which leaves ") &&
                         ContainsSubstring(" to tensors; tensors held "));
    CHECK(refusal(40, kCpu, bytes).empty());
  }
  CHECK(refusal(200, kCpu, std::nullopt).empty());
}

TEST_CASE("memory limit: many tensors that fit one after the other do not add up", "[device]") {
  device::install_counting_allocator();
  const MemoryLimit limit(kCpu, with_room(kCpu, 100));
  for (int i = 0; i < 20; ++i) {
    // Large ones come from the kernel each time, small ones from what malloc keeps.
    std::vector<at::Tensor> small;
    for (int k = 0; k < 50; ++k) small.push_back(block(1));
    small.clear();
    static_cast<void>(block(60));
  }
}

TEST_CASE("memory limit: what is held beside tensors is taken off, also when it grows later", "[device]") {
  device::install_counting_allocator();
  const std::int64_t bytes = with_room(kCpu, 160);
  const MemoryLimit limit(kCpu, bytes);
  CHECK(refusal(120, kCpu, bytes).empty());
  const std::vector<char> other(100 * kMiB, 'x');
  CHECK(!refusal(130, kCpu, bytes).empty());
  CHECK(other[kMiB] == 'x');
}

TEST_CASE("memory limit: the margin is smaller after the first steps", "[device]") {
  device::install_counting_allocator();
  const std::int64_t bytes = with_room(kCpu, 10);
  MemoryLimit limit(kCpu, bytes);
  CHECK(!refusal(26, kCpu, bytes).empty());
  limit.settle();
  CHECK(refusal(26, kCpu, bytes).empty());
}
#endif

TEST_CASE("memory limit: that it is exceeded all the same is said once", "[device]") {
  device::install_counting_allocator();
  const std::int64_t bytes = with_room(kCpu, 100);
  MemoryLimit limit(kCpu, bytes);
  CHECK(!limit.check(reading(0, std::nullopt, bytes)));
  const auto said = limit.check(reading(0, std::nullopt, bytes + kMiB));
  REQUIRE(said);
  CHECK_THAT(*said, ContainsSubstring("memory.limit: this process holds ") &&
                        ContainsSubstring("; what was kept for later was given back"));
  CHECK(!limit.check(reading(0, std::nullopt, bytes + kMiB)));
}

TEST_CASE("memory limit on the GPU: the driver never sees more, and what is freed can be had again",
          "[device][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  device::set_current(kGpu);
  static_cast<void>(block(1, kGpu));
  device::release_cached_memory(kGpu);
  const auto source = device::memory_source(kGpu);
  if (!source->process_bytes()) GPUTRAIN_SKIP("the driver reports nothing for this process");
  const std::int64_t bytes = with_room(kGpu, 200);
  {
    const MemoryLimit limit(kGpu, bytes);
    std::vector<at::Tensor> tensors;
    std::string said;
    while (said.empty() && tensors.size() < 100) {
      said = refusal(20, kGpu, bytes);
      if (said.empty()) tensors.push_back(block(20, kGpu));
      CHECK(*source->process_bytes() <= bytes);
    }
    CHECK(tensors.size() >= 8);
    CHECK(tensors.size() <= 10);
    CHECK_THAT(said,
               ContainsSubstring("out of memory on cuda:0: 20.00 MiB were asked for, memory.limit is ") &&
                   ContainsSubstring(", which leaves ") && ContainsSubstring(" to tensors; tensors held "));
    tensors.clear();
    // The allocator gives blocks of another size back before it fails.
    CHECK(refusal(150, kGpu, bytes).empty());
    CHECK(*source->process_bytes() <= bytes);
    device::release_cached_memory(kGpu);
  }
  CHECK(refusal(400, kGpu, std::nullopt).empty());
  device::release_cached_memory(kGpu);
}

TEST_CASE("allocator settings: expandable segments are asked for, unless the environment says otherwise",
          "[device]") {
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  ::unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  ::setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:100", 1);
  const std::vector<std::string> notices = device::use_expandable_segments();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0] ==
        "inactive: cuda.allocator (PYTORCH_ALLOC_CONF is \"max_split_size_mb:100\" in the environment, which "
        "holds instead; unset it, or add expandable_segments:True)");
  CHECK(!Config::use_expandable_segments());
  ::setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 1);
  CHECK(device::use_expandable_segments().empty());
  ::unsetenv("PYTORCH_ALLOC_CONF");
  device::use_expandable_segments();
  CHECK(Config::use_expandable_segments());
  c10::CachingAllocator::setAllocatorSettings("expandable_segments:False");
}

TEST_CASE("memory history: a snapshot is a pickle with what is held and what happened", "[device][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  device::set_current(kGpu);
  device::record_memory_history();
  const at::Tensor kept = block(3, kGpu);
  const std::string pickle = device::memory_snapshot();
  REQUIRE(pickle.size() > 2);
  CHECK(pickle.substr(0, 2) == "\x80\x02");
  CHECK(pickle.back() == '.');
  for (const char* key : {"segments", "device_traces", "frames", "alloc"}) {
    CHECK(pickle.find(key) != std::string::npos);
  }
}
