#pragma once

#include <functional>

namespace gputrain::report {

// Seconds since 1970-01-01 00:00 UTC. Passed in, so that what is written can be tested.
using UnixClock = std::function<double()>;
double unix_seconds();

}  // namespace gputrain::report
