#pragma once

namespace gputrain {

// Asks a run to stop at its next safe place: while one lives, SIGINT and SIGTERM only raise it. A second
// SIGINT ends the process at once. The handlers there before come back at its end; only one lives at a time.
class StopFlag {
 public:
  StopFlag();
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  // The first signal that came (SIGINT or SIGTERM), 0 before any. Safe in every thread.
  int signal() const;
  explicit operator bool() const { return signal() != 0; }
};

}  // namespace gputrain
