#include "device/stream.h"

#include "device/device.h"
#include "device/memory.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <chrono>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

using gputrain::device::AsyncScalars;
using gputrain::device::Mark;
using gputrain::device::PendingScalars;
using gputrain::device::StepClock;

namespace {

const at::Device kCpu(at::kCPU);
const at::Device kGpu(at::kCUDA, 0);

// Keeps the GPU busy for some tens of milliseconds and returns at once.
class Busy {
 public:
  Busy() : matrix_(at::full({8192, 8192}, 1e-4, at::TensorOptions(kGpu))) {}
  void keep() {
    for (int i = 0; i < 4; ++i) matrix_ = matrix_.matmul(matrix_);
  }

 private:
  at::Tensor matrix_;
};

double seconds_of(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

TEST_CASE("async scalars: on the CPU the values are there at once, as they were", "[device]") {
  AsyncScalars scalars(kCpu);
  at::Tensor values = at::tensor({1.5, -2.0, 1e-300}, at::kDouble);
  const PendingScalars pending = scalars.copy(values);
  values.fill_(9.0);
  CHECK(pending.ready());
  CHECK(pending.wait() == std::vector<double>{1.5, -2.0, 1e-300});
  CHECK(pending.wait() == std::vector<double>{1.5, -2.0, 1e-300});
}

TEST_CASE("async scalars: float32 and tensors of any shape are read in order", "[device]") {
  AsyncScalars scalars(kCpu);
  const at::Tensor values = at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).view({2, 3});
  CHECK(scalars.copy(values).wait() == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(scalars.copy(values.t()).wait() == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(scalars.copy(at::full({}, 7.0F)).wait() == std::vector<double>{7});
}

TEST_CASE("async scalars: values that want a gradient are read all the same", "[device]") {
  AsyncScalars scalars(kCpu);
  const at::Tensor values = at::ones({2}).set_requires_grad(true);
  CHECK(scalars.copy(values.mul(3)).wait() == std::vector<double>{3, 3});
}

TEST_CASE("async scalars: several copies on their way do not share a buffer", "[device]") {
  AsyncScalars scalars(kCpu);
  std::vector<PendingScalars> pending;
  for (int i = 0; i < 5; ++i) pending.push_back(scalars.copy(at::full({3}, i, at::kDouble)));
  for (int i = 0; i < 5; ++i) CHECK(pending[static_cast<std::size_t>(i)].wait()[2] == i);
}

TEST_CASE("async scalars: buffers are reused", "[device]") {
  gputrain::device::install_counting_allocator();
  gputrain::device::MemoryMeter meter(kCpu);
  AsyncScalars scalars(kCpu);
  const at::Tensor values = at::zeros({8}, at::kDouble);
  const auto two_at_once = [&] {
    const PendingScalars first = scalars.copy(values);
    const PendingScalars second = scalars.copy(values);
  };
  two_at_once();
  const auto before = meter.read().allocated;
  for (int i = 0; i < 100; ++i) two_at_once();
  CHECK(meter.read().allocated == before);
}

TEST_CASE("async scalars: values on their way outlive what reads them", "[device]") {
  PendingScalars pending;
  CHECK_FALSE(pending.valid());
  {
    AsyncScalars scalars(kCpu);
    pending = scalars.copy(at::full({1}, 4.0));
    pending = scalars.copy(at::full({1}, 5.0));
  }
  CHECK(pending.valid());
  CHECK(pending.wait() == std::vector<double>{5});
}

TEST_CASE("async scalars: integers and tensors of another device are refused", "[device]") {
  AsyncScalars scalars(kCpu);
  CHECK_THROWS_WITH(scalars.copy(at::zeros({1}, at::kLong)),
                    ContainsSubstring("float32 or float64 expected"));
}

TEST_CASE("async scalars: the host does not wait for the GPU, and reads what was there in turn",
          "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  gputrain::device::set_current(kGpu);
  AsyncScalars scalars(kGpu);
  Busy busy;
  at::Tensor values = at::zeros({8}, at::TensorOptions(kGpu).dtype(at::kDouble));
  scalars.copy(values).wait();  // the first copy pins memory, which waits
  busy.keep();
  gputrain::device::synchronize(kGpu);
  for (int round = 1; round <= 20; ++round) {
    busy.keep();
    values.fill_(round);
    const PendingScalars pending = scalars.copy(values);
    CHECK_FALSE(pending.ready());
    values.fill_(-1);
    CHECK(pending.wait() == std::vector<double>(8, round));
    CHECK(pending.ready());
  }
}

TEST_CASE("async scalars: a buffer dropped on its way is filled in order by the next copies",
          "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  gputrain::device::set_current(kGpu);
  AsyncScalars scalars(kGpu);
  Busy busy;
  busy.keep();
  for (int i = 0; i < 2000; ++i) scalars.copy(at::full({4}, i, at::TensorOptions(kGpu).dtype(at::kFloat)));
  CHECK(scalars.copy(at::full({4}, 5000, at::TensorOptions(kGpu).dtype(at::kFloat))).wait() ==
        std::vector<double>(4, 5000));
}

TEST_CASE("step clock: on the CPU it measures time as it passes", "[device]") {
  StepClock clock(kCpu);
  const Mark start = clock.record();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Mark end = clock.record();
  CHECK(end.reached());
  CHECK(clock.seconds_between(start, end) >= 0.02);
  CHECK(clock.seconds_between(start, end) < 1);
  CHECK(clock.seconds_between(end, start) == -clock.seconds_between(start, end));
  CHECK(clock.seconds_between(start, start) == 0);
}

TEST_CASE("step clock: a mark keeps its time while a copy of it lives", "[device]") {
  StepClock clock(kCpu);
  Mark previous = clock.record();
  const Mark kept = previous;
  for (int i = 0; i < 10; ++i) previous = clock.record();
  CHECK(clock.seconds_between(kept, previous) > 0);
  CHECK_FALSE(Mark().valid());
}

TEST_CASE("step clock: on a GPU it measures the device's time, not the host's", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  gputrain::device::set_current(kGpu);
  StepClock clock(kGpu);
  Busy busy;
  busy.keep();
  gputrain::device::synchronize(kGpu);
  const auto start = std::chrono::steady_clock::now();
  const Mark first = clock.record();
  busy.keep();
  const Mark second = clock.record();
  CHECK_FALSE(second.reached());
  gputrain::device::synchronize(kGpu);
  const double host = seconds_of(std::chrono::steady_clock::now() - start);
  CHECK(second.reached());
  const double device = clock.seconds_between(first, second);
  CHECK(device <= host);
  CHECK(device > 0.8 * host);
}

TEST_CASE("step clock: the times of windows add up to the whole", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  gputrain::device::set_current(kGpu);
  StepClock clock(kGpu);
  Busy busy;
  std::vector<Mark> marks{clock.record()};
  for (int i = 0; i < 4; ++i) {
    busy.keep();
    marks.push_back(clock.record());
  }
  double sum = 0;
  for (std::size_t i = 1; i < marks.size(); ++i) sum += clock.seconds_between(marks[i - 1], marks[i]);
  // Events count in steps of half a microsecond.
  CHECK(std::abs(sum - clock.seconds_between(marks.front(), marks.back())) < 1e-5);
}

TEST_CASE("streams: thousands of copies and marks leave the process no larger", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  gputrain::device::set_current(kGpu);
  AsyncScalars scalars(kGpu);
  StepClock clock(kGpu);
  gputrain::device::MemoryMeter host(kCpu);
  const at::Tensor values = at::zeros({8}, at::TensorOptions(kGpu));
  const auto steps = [&](int count) {
    Mark mark;
    for (int i = 0; i < count; ++i) {
      scalars.copy(values).wait();
      mark = clock.record();
    }
  };
  steps(500);
  const auto before = host.read().device;
  steps(5000);
  CHECK(*host.read().device - *before < (4 << 20));
}
