#pragma once

namespace gputrain {

// Asks a run to stop at its next safe place: while one lives, SIGINT, SIGTERM and SIGHUP only raise it. A
// second SIGINT ends the process at once. A signal that was ignored stays ignored (nohup, jobs in the
// background). The handlers there before come back at its end; only one lives at a time.
class StopFlag {
 public:
  StopFlag();
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  // The first signal that came, SIGHUP taken as SIGTERM; 0 before any. Safe in every thread.
  int signal() const;
  explicit operator bool() const { return signal() != 0; }
};

}  // namespace gputrain
