#include "device/probe.h"

#include "device/device.h"
#include "device/generators.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/Context.h>

#include <vector>

using gputrain::device::configure;
using gputrain::device::probe;

TEST_CASE("probe: the CPU computes what it should", "[device]") {
  CHECK(probe(at::Device(at::kCPU)) == std::nullopt);
}

TEST_CASE("probe: the GPU computes what it should, also where TF32 is on", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const at::Device gpu(at::kCUDA, 0);
  for (const bool tf32 : {false, true}) {
    configure(gpu, tf32, false, std::nullopt);
    CHECK(probe(gpu) == std::nullopt);
  }
}

TEST_CASE("probe: generators and TF32 are left as they were", "[device]") {
  const at::Device cpu(at::kCPU);
  gputrain::device::seed_generators(cpu, 1, 2);
  const auto before = gputrain::device::generator_state(cpu);
  for (const bool tf32 : {true, false}) {
    configure(cpu, tf32, false, std::nullopt);
    probe(cpu);
    CHECK(at::globalContext().allowTF32CuBLAS() == tf32);
    CHECK(at::globalContext().allowTF32CuDNN() == tf32);
  }
  CHECK(gputrain::device::generator_state(cpu) == before);
}

TEST_CASE("probe: a device that is not there is an answer, not an exception", "[device]") {
  const auto failure = probe(at::Device(at::kCUDA, 99));
  REQUIRE(failure.has_value());
  CHECK_THAT(*failure, ContainsSubstring("cuda:99 failed: "));
  CHECK_THAT(*failure, !ContainsSubstring("\n"));
}
