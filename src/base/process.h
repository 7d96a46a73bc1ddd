#pragma once

namespace gputrain {

// Seconds since this process was started, loading of its libraries included; steps of 10 ms.
double seconds_since_process_start();

}  // namespace gputrain
