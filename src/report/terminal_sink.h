#pragma once

#include "train/records.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>

namespace gputrain::report {

// Where human text goes and what it can show.
struct Terminal {
  std::ostream* out = nullptr;
  bool live = false;  // a line that redraws: only where `out` is a terminal
  bool color = false;
  std::function<int()> columns;     // width, asked at each redraw; needed when `live`
  std::function<double()> seconds;  // monotonic clock; needed when `live`
};

// Standard error: live when it is a terminal and `progress` allows it, coloured on a terminal that is
// not "dumb" unless NO_COLOR is set.
Terminal stderr_terminal(bool progress);

// What a person watches: the step lines of StepLines, validation lines, notices, the summary, and on a
// live terminal a progress line between them.
std::unique_ptr<train::Sink> terminal_sink(Terminal terminal, std::int64_t log_every);

}  // namespace gputrain::report
