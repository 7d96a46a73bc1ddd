#pragma once

#include "optim/optimizer.h"
#include "optim/schedule.h"

// The rows of all.cpp.
namespace gputrain::optim {

OptimizerComponent sgd();
OptimizerComponent adamw();
OptimizerComponent adam();
OptimizerComponent lion();
OptimizerComponent lamb();
OptimizerComponent adafactor();
OptimizerComponent muon();

// Each but one_cycle, whose rise is its own, begins with a linear warm-up over `warmup_steps`: update k of
// them (from 1) has k / (warmup_steps + 1) of the peak. What follows counts from the end of the warm-up.
ScheduleComponent constant();
ScheduleComponent linear();
ScheduleComponent cosine();
ScheduleComponent step_decay();
ScheduleComponent polynomial();
ScheduleComponent inverse_sqrt();
ScheduleComponent wsd();
ScheduleComponent one_cycle();

}  // namespace gputrain::optim
