#include "optim/components.h"

namespace gputrain::optim {

const std::vector<OptimizerComponent>& all_optimizers() {
  static const std::vector<OptimizerComponent> optimizers = {sgd(),  adamw(),     adam(), lion(),
                                                             lamb(), adafactor(), muon()};
  return optimizers;
}

const std::vector<ScheduleComponent>& all_schedules() {
  static const std::vector<ScheduleComponent> schedules = {
      constant(), linear(), cosine(), step_decay(), polynomial(), inverse_sqrt(), wsd(), one_cycle()};
  return schedules;
}

}  // namespace gputrain::optim
