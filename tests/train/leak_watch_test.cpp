#include "train/leak_watch.h"

#include "device/memory.h"
#include "support/catch.h"
#include "train/support.h"

#include <ATen/ops/zeros.h>

using namespace gputrain;
using namespace gputrain::train;

namespace {

constexpr std::int64_t kKiB = 1024;

// Keeps something of each batch.
class Hoarder final : public Points {
 public:
  using Points::Points;
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    kept_.push_back(at::zeros({25 * kKiB}));
    return Points::batch(ids);
  }

 private:
  std::vector<at::Tensor> kept_;
};

std::vector<std::string> notices_of_growth(const Recorder& recorder) {
  std::vector<std::string> some;
  for (const std::string& notice : recorder.notices) {
    if (notice.rfind("memory grows", 0) == 0) some.push_back(notice);
  }
  return some;
}

}  // namespace

TEST_CASE("leak watch: growth in 50 windows in a row is told once, with what a step adds", "[train]") {
  LeakWatch watch;
  std::int64_t held = 1000;
  for (int i = 0; i < 50; ++i) CHECK(!watch.after_window(8, held += 100 * kKiB));
  const auto told = watch.after_window(8, held += 100 * kKiB);
  REQUIRE(told);
  CHECK(
      *told ==
      "memory grows: tensors held more after each of the last 50 steps, 100.0 KiB a step; something that is "
      "made there is never freed");
  for (int i = 0; i < 100; ++i) CHECK(!watch.after_window(8, held += 100 * kKiB));
}

TEST_CASE("leak watch: a window that adds nothing ends a row, and a short one is no part of it", "[train]") {
  LeakWatch watch;
  std::int64_t held = 0;
  for (int i = 0; i < 400; ++i) {
    if (i % 40 != 0) held += 100 * kKiB;
    CHECK(!watch.after_window(8, held));
  }
  LeakWatch other;
  bool is_told = false;
  for (int i = 0; i < 60; ++i) {
    is_told = is_told || other.after_window(8, held += 100 * kKiB).has_value();
    CHECK(!other.after_window(3, 0));
  }
  CHECK(is_told);
}

TEST_CASE("leak watch: little growth is none", "[train]") {
  LeakWatch watch;
  std::int64_t held = 0;
  for (int i = 0; i < 1000; ++i) CHECK(!watch.after_window(8, held += 512));
}

TEST_CASE("leak watch: what validations keep is theirs", "[train]") {
  LeakWatch watch;
  std::int64_t held = 0;
  for (int validation = 0; validation < 3; ++validation) {
    for (int i = 0; i < 30; ++i) CHECK(!watch.after_window(8, held));
    CHECK(!watch.after_validation(held, held + 512 * kKiB));
    held += 512 * kKiB;
  }
  const auto told = watch.after_validation(held, held + 512 * kKiB);
  REQUIRE(told);
  CHECK_THAT(*told, ContainsSubstring("after each of the last 4 validations, 512.0 KiB a validation"));
}

TEST_CASE("leak watch: a run whose data keeps each batch is told so, another is not", "[train]") {
  device::install_counting_allocator();
  Bench leaking(64);
  leaking.data.train = std::make_unique<Hoarder>(64);
  leaking.options.micro_batch_size = 8;
  leaking.options.max_steps = 80;
  leaking.train();
  REQUIRE(notices_of_growth(leaking.recorder).size() == 1);
  CHECK_THAT(notices_of_growth(leaking.recorder)[0], ContainsSubstring(", 100.0 KiB a step"));
  Bench sound(60, 10);
  sound.options.micro_batch_size = 8;
  sound.options.max_steps = 200;
  sound.train();
  CHECK(notices_of_growth(sound.recorder).empty());
}
