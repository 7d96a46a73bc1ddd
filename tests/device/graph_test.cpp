#include "device/graph.h"

#include "device/device.h"
#include "device/generators.h"
#include "device/memory.h"
#include "device/stream.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <stdexcept>

namespace gputrain::device {
namespace {

const at::Device kGpu(at::kCUDA, 0);

at::TensorOptions on_gpu() {
  return at::TensorOptions(kGpu);
}

}  // namespace

TEST_CASE("graph: a replay works on what its tensors hold now, the recording does nothing", "[device][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  set_current(kGpu);
  at::Tensor x = at::full({3}, 2, on_gpu()), sum = at::zeros({3}, on_gpu());
  sum.add_(x.mul(10));
  Graph graph(kGpu);
  graph.capture([&] { sum.add_(x.mul(10)); });
  CHECK(sum.sum().item<double>() == 60);
  graph.replay();
  x.fill_(1);
  graph.replay();
  CHECK(sum.sum().item<double>() == 60 + 60 + 30);
  CHECK(graph.temporary_bytes() >= 3 * 4);
}

TEST_CASE("graph: random numbers are drawn anew, as seeded before the replay", "[device][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  set_current(kGpu);
  at::Tensor drawn = at::zeros({50}, on_gpu());
  drawn.uniform_();
  Graph graph(kGpu);
  graph.capture([&] { drawn.uniform_(); });
  const auto draw = [&](std::uint64_t position) {
    seed_generators(kGpu, 1, position);
    graph.replay();
    return drawn.cpu();
  };
  const at::Tensor first = draw(0);
  CHECK_FALSE(draw(1).equal(first));
  CHECK(draw(0).equal(first));
  seed_generators(kGpu, 1, 0);
  CHECK(at::rand({50}, on_gpu()).cpu().equal(first));
}

TEST_CASE("graph: graphs that share memory run one after the other", "[device][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  set_current(kGpu);
  const at::Tensor x = at::full({1000}, 3, on_gpu());
  at::Tensor made, sum = at::zeros({}, on_gpu());
  x.mul(x).sum();
  Graph makes(kGpu), adds(kGpu, &makes);
  makes.capture([&] { made = x.mul(x); });
  adds.capture([&] { sum.add_(made.mul(2).sum()); });
  for (int i = 0; i < 3; ++i) {
    makes.replay();
    adds.replay();
  }
  CHECK(sum.item<double>() == 3 * 2 * 9 * 1000);
}

TEST_CASE("graph: what cannot be recorded leaves generators and memory as they were", "[device][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  set_current(kGpu);
  const at::Tensor x = at::full({1 << 24}, 2, on_gpu());
  seed_generators(kGpu, 1, 0);
  const at::Tensor drawn = at::rand({3}, on_gpu());
  MemoryMeter meter(kGpu);
  const auto read_value = [&] { static_cast<void>(x.mul(2).sum().item<double>()); };
  const auto read_value_and_go_on = [&] {
    try {
      read_value();
    } catch (const c10::Error&) {  // the recording is broken all the same
    }
  };
  for (int i = 0; i < 4; ++i) {
    {
      Graph graph(kGpu);
      if (i % 2 == 0) {
        CHECK_THROWS(graph.capture(read_value));
      } else {
        CHECK_THROWS_AS(graph.capture(read_value_and_go_on), c10::Error);
      }
    }
    seed_generators(kGpu, 1, 0);
    CHECK(at::rand({3}, on_gpu()).equal(drawn));
    c10::getDeviceAllocator(at::kCUDA)->emptyCache();
    CHECK(meter.read().reserved.value() < 2 * static_cast<std::int64_t>(x.nbytes()));
  }
}

TEST_CASE("graph: what cannot be recorded is an error, and the device works on", "[device][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  set_current(kGpu);
  at::Tensor x = at::full({3}, 2, on_gpu());
  {
    Graph graph(kGpu);
    CHECK_THROWS(graph.capture([&] { static_cast<void>(x.sum().item<double>()); }));
  }
  CHECK(x.sum().item<double>() == 6);
  {
    Graph graph(kGpu);
    CHECK_THROWS_WITH(graph.capture([&] {
      x.mul(2);
      throw std::runtime_error("by the work");
    }),
                      "by the work");
  }
  CHECK(x.add(at::rand({3}, on_gpu()).mul(0)).sum().item<double>() == 6);
  synchronize(kGpu);
  Graph graph(kGpu);
  graph.capture([&] { x.add_(1); });
  graph.replay();
  CHECK(x.sum().item<double>() == 9);
}

}  // namespace gputrain::device
