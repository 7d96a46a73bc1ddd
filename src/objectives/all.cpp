#include "objectives/cross_entropy.h"
#include "objectives/objective.h"

namespace gputrain::objectives {

const std::vector<ObjectiveComponent>& all_objectives() {
  static const std::vector<ObjectiveComponent> objectives = {cross_entropy()};
  return objectives;
}

}  // namespace gputrain::objectives
