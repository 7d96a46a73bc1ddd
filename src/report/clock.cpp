#include "report/clock.h"

#include <chrono>

namespace gputrain::report {

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace gputrain::report
