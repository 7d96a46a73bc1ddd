#include "device/counting_allocator.h"

#include "device/memory.h"
#include "support/catch.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>

#include <thread>
#include <vector>

using gputrain::device::cpu_counts;
using gputrain::device::install_counting_allocator;
using gputrain::device::reset_cpu_peak;

TEST_CASE("counting allocator: a tensor counts with the bytes it asked for, until it is gone", "[device]") {
  install_counting_allocator();
  const std::int64_t before = cpu_counts().now;
  {
    const at::Tensor tensor = at::empty({3, 5});
    CHECK(cpu_counts().now == before + 60);
    const at::Tensor view = tensor.view({15});
    CHECK(cpu_counts().now == before + 60);
    const at::Tensor doubles = at::zeros({7}, at::kDouble);
    CHECK(cpu_counts().now == before + 60 + 56);
  }
  CHECK(cpu_counts().now == before);
}

TEST_CASE("counting allocator: the peak is the most since it was reset", "[device]") {
  install_counting_allocator();
  const std::int64_t before = cpu_counts().now;
  reset_cpu_peak();
  CHECK(cpu_counts().peak == before);
  { const at::Tensor gone = at::empty({1000}); }
  const at::Tensor kept = at::empty({10});
  CHECK(cpu_counts().peak == before + 4000);
  reset_cpu_peak();
  CHECK(cpu_counts().peak == before + 40);
}

TEST_CASE("counting allocator: an empty tensor counts nothing", "[device]") {
  install_counting_allocator();
  const std::int64_t before = cpu_counts().now;
  const at::Tensor tensor = at::empty({0, 4});
  CHECK(cpu_counts().now == before);
}

TEST_CASE("counting allocator: growing a tensor in place counts the new block", "[device]") {
  install_counting_allocator();
  const std::int64_t before = cpu_counts().now;
  at::Tensor tensor = at::empty({2});
  tensor.resize_({50});
  CHECK(cpu_counts().now == before + 200);
}

TEST_CASE("counting allocator: raw blocks are counted and freed through its deleter", "[device]") {
  install_counting_allocator();
  c10::Allocator* allocator = c10::GetCPUAllocator();
  const std::int64_t before = cpu_counts().now;
  void* block = allocator->raw_allocate(300);
  CHECK(cpu_counts().now == before + 300);
  allocator->raw_deallocate(block);
  CHECK(cpu_counts().now == before);
}

TEST_CASE("counting allocator: a block made before it was installed is freed and not counted", "[device]") {
  install_counting_allocator();
  const std::int64_t before = cpu_counts().now;
  void* block = c10::GetDefaultCPUAllocator()->raw_allocate(300);
  c10::GetCPUAllocator()->raw_deallocate(block);
  CHECK(cpu_counts().now == before);
}

TEST_CASE("counting allocator: tensors made and freed by several threads leave nothing behind", "[device]") {
  install_counting_allocator();
  const std::int64_t before = cpu_counts().now;
  std::vector<std::vector<at::Tensor>> made(4);
  std::vector<std::thread> threads;
  for (auto& tensors : made)
    threads.emplace_back([&tensors] {
      for (int i = 0; i < 500; ++i) {
        tensors.push_back(at::empty({25}));
        if (i % 2 == 1) tensors.erase(tensors.begin());
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(cpu_counts().now == before + 4 * 250 * 100);
  made.clear();
  CHECK(cpu_counts().now == before);
}
