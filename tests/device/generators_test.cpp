#include "device/generators.h"

#include "device/device.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <vector>

using gputrain::device::generator_state;
using gputrain::device::seed_generators;

namespace {

const at::Device kCpu(at::kCPU);

at::Tensor draw(at::Device device, std::uint64_t seed, std::uint64_t position) {
  seed_generators(device, seed, position);
  return at::rand({7}, at::TensorOptions(device));
}

void check_draws(at::Device device) {
  const at::Tensor first = draw(device, 1, 0);
  CHECK(draw(device, 1, 0).equal(first));
  CHECK_FALSE(draw(device, 1, 1).equal(first));
  CHECK_FALSE(draw(device, 2, 0).equal(first));
  CHECK_FALSE(draw(device, 0, 1).equal(first));  // seed and position are not interchangeable
}

}  // namespace

TEST_CASE("generators: what is drawn depends on seed and position alone", "[device]") {
  check_draws(kCpu);
}

TEST_CASE("generators: the GPU's draws depend on seed and position alone", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const at::Device gpu(at::kCUDA, 0);
  gputrain::device::set_current(gpu);
  check_draws(gpu);
}

TEST_CASE("generators: seeding forgets the half of a normal pair that was left over", "[device]") {
  seed_generators(kCpu, 1, 0);
  const at::Tensor first = at::randn({3});
  at::randn({1});
  seed_generators(kCpu, 1, 0);
  CHECK(at::randn({3}).equal(first));
}

TEST_CASE("generators: neighbouring positions differ in both halves of the seed", "[device]") {
  // The CPU's generator takes the lower 32 bits only.
  std::vector<std::vector<std::uint8_t>> states;
  for (std::uint64_t position = 0; position < 100; ++position) {
    seed_generators(kCpu, 1, position);
    states.push_back(generator_state(kCpu));
  }
  std::sort(states.begin(), states.end());
  CHECK(std::adjacent_find(states.begin(), states.end()) == states.end());
}

TEST_CASE("generators: the state tells whether the same draws will come", "[device]") {
  seed_generators(kCpu, 5, 9);
  const auto before = generator_state(kCpu);
  CHECK(generator_state(kCpu) == before);
  at::rand({1});
  CHECK(generator_state(kCpu) != before);
  seed_generators(kCpu, 5, 9);
  CHECK(generator_state(kCpu) == before);
}

TEST_CASE("generators: on a GPU the state covers both generators", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const at::Device gpu(at::kCUDA, 0);
  gputrain::device::set_current(gpu);
  seed_generators(gpu, 5, 9);
  const auto before = generator_state(gpu);
  CHECK(before.size() > generator_state(kCpu).size());
  at::rand({1}, at::TensorOptions(gpu));
  CHECK(generator_state(gpu) != before);
}
