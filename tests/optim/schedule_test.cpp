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

TEST_CASE("linear and cosine: a run limited by time alone has to say where the schedule ends", "[optim]") {
  for (const char* name : {"linear", "cosine"}) {
    CHECK_THROWS_WITH(make(name, {}, {{}, 10}), ContainsSubstring("lr_scheduler.total_steps"));
    CHECK_NOTHROW(make(name, {{"total_steps", "5"}}, {{}, 10}));
  }
}

TEST_CASE("step: a length in time is refused", "[optim]") {
  CHECK_THROWS_WITH(make("step", {{"every", "30min"}}, {100, 10}),
                    ContainsSubstring("lr_scheduler.every is a time"));
}

}  // namespace gputrain::optim
