#include "optim/components.h"

namespace gputrain::optim {

const std::vector<OptimizerComponent>& all_optimizers() {
  static const std::vector<OptimizerComponent> optimizers = {sgd(), adamw()};
  return optimizers;
}

const std::vector<ScheduleComponent>& all_schedules() {
  static const std::vector<ScheduleComponent> schedules = {constant(), linear(), cosine(), step_decay()};
  return schedules;
}

}  // namespace gputrain::optim
