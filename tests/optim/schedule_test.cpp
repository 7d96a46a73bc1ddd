#include "optim/schedule.h"

#include "base/error.h"
#include "support/catch.h"
#include "support/settings.h"

namespace gputrain::optim {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Schedule make(const std::string& name, const Settings& values, const ScheduleContext& context) {
  return bound(all_schedules(), name, values).build(context);
}

}  // namespace

TEST_CASE("every schedule: warm-up rises in a straight line and never starts at 0", "[optim]") {
  for (const ScheduleComponent& component : all_schedules()) {
    if (component.name == "one_cycle") continue;  // its rise is its own
    INFO(component.name);
    const Schedule schedule = make(component.name, {{"warmup_steps", "3"}}, {100, 10});
    CHECK(schedule(0) == Approx(0.25));
    CHECK(schedule(1) == Approx(0.5));
    CHECK(schedule(2) == Approx(0.75));
    CHECK(schedule(3) == Approx(1));
  }
}

TEST_CASE("constant: the peak throughout", "[optim]") {
  const Schedule schedule = make("constant", {}, {{}, 1});
  CHECK(schedule(0) == 1);
  CHECK(schedule(123456) == 1);
}

TEST_CASE("linear: from 1 to the final factor at total_steps, and it stays there", "[optim]") {
  const Schedule schedule = make("linear", {{"warmup_steps", "2"}, {"final_factor", "0.2"}}, {12, 10});
  CHECK(schedule(2) == Approx(1));
  CHECK(schedule(7) == Approx(0.6));
  CHECK(schedule(12) == Approx(0.2));
  CHECK(schedule(500) == Approx(0.2));
}

TEST_CASE("cosine: half-way it has fallen by half, and total_steps of its own win over the recipe's",
          "[optim]") {
  const Schedule schedule = make("cosine", {{"total_steps", "8"}}, {100, 10});
  CHECK(schedule(0) == Approx(1));
  CHECK(schedule(2) == Approx(0.8535533906));  // (1 + cos(pi / 4)) / 2
  CHECK(schedule(4) == Approx(0.5));
  CHECK(schedule(8) == Approx(0).margin(1e-12));
}

TEST_CASE("step: falls by gamma every so many epochs, or steps", "[optim]") {
  const Schedule by_epoch = make("step", {{"every", "2ep"}, {"gamma", "0.5"}}, {{}, 10});
  CHECK(by_epoch(19) == 1);
  CHECK(by_epoch(20) == 0.5);
  CHECK(by_epoch(40) == 0.25);
  const Schedule by_step = make("step", {{"every", "3"}, {"gamma", "0.5"}, {"warmup_steps", "1"}}, {{}, 10});
  CHECK(by_step(3) == 1);
  CHECK(by_step(4) == 0.5);
}

TEST_CASE("polynomial: a power of what is left of the way", "[optim]") {
  const Schedule square = make("polynomial", {{"warmup_steps", "2"}, {"final_factor", "0.2"}}, {12, 10});
  CHECK(square(2) == Approx(1));
  CHECK(square(7) == Approx(0.4));     // 0.2 + 0.8 * 0.5^2
  CHECK(square(10) == Approx(0.232));  // 0.2 + 0.8 * 0.2^2
  CHECK(square(500) == Approx(0.2));
  const Schedule root = make("polynomial", {{"power", "0.5"}}, {16, 10});
  CHECK(root(12) == Approx(0.5));
}

TEST_CASE("inverse_sqrt: with its warm-up as time scale it is the Transformer's", "[optim]") {
  const Schedule schedule = make("inverse_sqrt", {{"warmup_steps", "4"}}, {{}, 1});
  CHECK(schedule(4) == Approx(1));
  CHECK(schedule(9) == Approx(2.0 / 3));  // sqrt(4 / 9)
  CHECK(schedule(400) == Approx(0.1));
  const Schedule slow = make("inverse_sqrt", {}, {{}, 1});
  CHECK(slow(0) == 1);
  CHECK(slow(30000) == Approx(0.5));
  CHECK(make("inverse_sqrt", {{"warmup_steps", "4"}, {"timescale", "12"}}, {{}, 1})(4 + 36) == Approx(0.5));
}

TEST_CASE("wsd: stable at the peak, then a decay at the end", "[optim]") {
  const Schedule by_share = make("wsd", {{"warmup_steps", "5"}, {"final_factor", "0.2"}}, {100, 10});
  CHECK(by_share(5) == 1);
  CHECK(by_share(90) == 1);
  CHECK(by_share(95) == Approx(0.6));
  CHECK(by_share(100) == Approx(0.2));
  CHECK(by_share(999) == Approx(0.2));
  const auto shaped = [](const std::string& shape) {
    return make("wsd", {{"decay_steps", "8"}, {"shape", shape}, {"total_steps", "20"}}, {100, 10});
  };
  CHECK(shaped("linear")(14) == Approx(0.75));
  CHECK(shaped("cosine")(14) == Approx(0.8535533906));
  CHECK(shaped("sqrt")(14) == Approx(0.5));
  CHECK(make("wsd", {{"decay_fraction", "0.5"}}, {8, 10})(6) == Approx(0.5));
}

TEST_CASE("wsd: a decay that does not fit is refused, one of its own length is cut", "[optim]") {
  CHECK_THROWS_WITH(make("wsd", {{"decay_steps", "8"}, {"decay_fraction", "0.5"}}, {100, 10}),
                    "lr_scheduler.decay_fraction is 0.5 and lr_scheduler.decay_steps is 8; expected one of "
                    "the two");
  CHECK_THROWS_WITH(make("wsd", {{"decay_steps", "8"}, {"warmup_steps", "3"}}, {10, 10}),
                    "lr_scheduler.decay_steps asks for a decay of 8 steps, and of 10 steps 3 are warm-up; "
                    "expected at most 7");
  CHECK_THROWS_WITH(make("wsd", {{"decay_fraction", "1"}, {"warmup_steps", "3"}}, {10, 10}),
                    ContainsSubstring("lr_scheduler.decay_fraction asks for a decay of 10 steps"));
  CHECK(make("wsd", {{"warmup_steps", "98"}}, {100, 10})(99) == Approx(0.5));
  CHECK(make("wsd", {}, {1, 10})(0) == 1);
}

TEST_CASE("one_cycle: the values of PyTorch's OneCycleLR", "[optim]") {
  const Schedule schedule = make("one_cycle", {}, {10, 10});
  CHECK(schedule(0) == Approx(0.04));
  CHECK(schedule(1) == Approx(0.52));  // half-way between 0.04 and 1
  CHECK(schedule(2) == Approx(1));
  // 4e-6 + (1 - 4e-6) * (1 + cos(pi * 3 / 7)) / 2
  CHECK(schedule(5) == Approx(0.6112620220));
  CHECK(schedule(9) == Approx(4e-6));
  CHECK(schedule(50) == Approx(4e-6));
  const Schedule falling = make("one_cycle", {{"pct_start", "0"}, {"final_div_factor", "1"}}, {3, 10});
  CHECK(falling(0) == 1);
  CHECK(falling(1) == Approx(0.52));
  CHECK(falling(2) == Approx(0.04));
  CHECK(make("one_cycle", {}, {1, 10})(0) == 1);
}

TEST_CASE("every schedule with an end: a run limited by time alone has to say where that is", "[optim]") {
  for (const char* name : {"linear", "cosine", "polynomial", "wsd", "one_cycle"}) {
    CHECK_THROWS_WITH(make(name, {}, {{}, 10}), ContainsSubstring("lr_scheduler.total_steps"));
    CHECK_NOTHROW(make(name, {{"total_steps", "5"}}, {{}, 10}));
  }
}

TEST_CASE("step: a length in time is refused", "[optim]") {
  CHECK_THROWS_WITH(make("step", {{"every", "30min"}}, {100, 10}),
                    ContainsSubstring("lr_scheduler.every is a time"));
}

}  // namespace gputrain::optim
