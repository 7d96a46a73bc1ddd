#pragma once

#include "optim/schedule.h"

// Each begins with a linear warm-up over `warmup_steps`: update k of them (from 1) has k / (warmup_steps + 1)
// of the peak. What follows counts from the end of the warm-up.
namespace gputrain::optim {

ScheduleComponent constant();
ScheduleComponent linear();
ScheduleComponent cosine();
ScheduleComponent step_decay();

}  // namespace gputrain::optim
