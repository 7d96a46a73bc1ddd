#pragma once

#include "recipe/component.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace gputrain::optim {

// The factor on the peak learning rate for the update that comes after `applied` updates.
using Schedule = std::function<double(std::int64_t applied)>;

struct ScheduleContext {
  std::optional<std::int64_t> total_steps;  // the smallest limit of steps in the recipe; absent: none
  std::int64_t steps_per_epoch = 1;
};

using ScheduleComponent = recipe::Component<Schedule, const ScheduleContext&>;

// An interval in updates, at least 1. A time cannot be told in updates: std::nullopt.
std::optional<std::int64_t> steps_of(const recipe::Interval& interval, std::int64_t steps_per_epoch);

// Every schedule that a recipe can name. Building one throws SettingError where settings do not fit each
// other, or where it needs a horizon that neither the recipe nor the context has.
const std::vector<ScheduleComponent>& all_schedules();

}  // namespace gputrain::optim
