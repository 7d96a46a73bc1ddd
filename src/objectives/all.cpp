#include "objectives/components.h"

namespace gputrain::objectives {

const std::vector<ObjectiveComponent>& all_objectives() {
  static const std::vector<ObjectiveComponent> objectives = {cross_entropy()};
  return objectives;
}

}  // namespace gputrain::objectives
