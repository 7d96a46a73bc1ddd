#include "device/device.h"
#include "device/memory.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <new>
#include <stdexcept>
#include <string>

using gputrain::device::describe_out_of_memory;
using gputrain::device::is_out_of_memory;

namespace {

constexpr std::int64_t kPiB = 1LL << 50;

// The description of what allocating 1 PiB there throws; "" when it throws nothing that counts as out of
// memory.
std::string description_of_failure(at::Device device) {
  try {
    at::empty({kPiB}, at::TensorOptions(device).dtype(at::kByte));
  } catch (const std::exception& error) {
    return is_out_of_memory(error) ? describe_out_of_memory(error, device) : "";
  }
  return "";
}

}  // namespace

TEST_CASE("out of memory: a failed CPU tensor is described by asked, free and held", "[device]") {
  const std::string text = description_of_failure(at::Device(at::kCPU));
  CHECK_THAT(text, ContainsSubstring("out of memory on cpu: 1024.0 TiB were asked for, ") &&
                       ContainsSubstring(" are free; tensors hold "));
}

TEST_CASE("out of memory: a failed GPU tensor is described by asked, free, held and reserved",
          "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const at::Device gpu(at::kCUDA, 0);
  gputrain::device::set_current(gpu);
  const std::string text = description_of_failure(gpu);
  CHECK_THAT(text, ContainsSubstring("out of memory on cuda:0: 1048576.00 GiB were asked for, ") &&
                       ContainsSubstring(" are free; tensors held ") &&
                       ContainsSubstring(", the allocator has reserved "));
}

TEST_CASE("out of memory: bad_alloc is one, another error is none", "[device]") {
  CHECK(is_out_of_memory(std::bad_alloc()));
  CHECK(is_out_of_memory(std::runtime_error("CUDA error: out of memory")));
  CHECK(is_out_of_memory(
      std::runtime_error("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`")));
  CHECK_FALSE(is_out_of_memory(std::runtime_error("the file is out of date")));
}

TEST_CASE("out of memory: host memory that ran out beside a GPU is reported as the host's", "[device]") {
  CHECK_THAT(describe_out_of_memory(std::bad_alloc(), at::Device(at::kCUDA, 0)),
             ContainsSubstring("out of memory on cpu: "));
}
