#pragma once

#include <string>

namespace gputrain {

// Seconds since this process was started, loading of its libraries included; the start is known to 10 ms.
// 0 where /proc does not say.
double seconds_since_process_start(const std::string& stat_path = "/proc/self/stat");

}  // namespace gputrain
