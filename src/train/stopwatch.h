#pragma once

#include <chrono>

namespace gputrain::train {

// Host time since it was made or restarted.
class Stopwatch {
 public:
  void restart() { start_ = std::chrono::steady_clock::now(); }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace gputrain::train
