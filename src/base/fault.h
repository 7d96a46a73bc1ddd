#pragma once

#include "base/units.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gputrain {

// Faults that a test asks for through GPUTRAIN_FAULT, none without it (docs/testing.md):
//   nan@step=3,micro=0            the loss of that micro-batch is not a number
//   load@item=7,phase=training    sample 7 of that split cannot be read; phase: training or validation
//   oom@step=2,phase=backward     out of memory in forward, backward, optimizer or validation
//   sleep@phase=step,ms=200       a pause in step, validation or save; step=N: only there
//   stop@step=4                   SIGTERM after that step
//   short_write@file=NAME         each write(2) takes half of what is left; the file must come out whole
//   disk_full@file=NAME           the disk is full half-way through that file
// Several are separated by `;`. A place that is not named means every place. Steps count from 1: step=3 is
// the update that becomes step 3.
enum class FaultKind { kNan, kLoad, kOutOfMemory, kSleep, kStop, kShortWrite, kDiskFull };

// Where the program stands; what does not apply is left out.
struct FaultPlace {
  std::optional<std::int64_t> step{};
  std::optional<std::int64_t> micro{};
  std::optional<std::int64_t> item{};
  std::string_view phase{};  // training, validation; forward, backward, optimizer; step, save
  std::string_view file{};   // last part of its path
};

struct Fault {
  FaultKind kind = FaultKind::kNan;
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> micro;
  std::optional<std::int64_t> item;
  std::string phase;
  std::string file;
  std::int64_t milliseconds = 0;
};

Parsed<std::vector<Fault>> parse_faults(std::string_view text);

bool strikes(const Fault& fault, FaultKind kind, const FaultPlace& place);

// Reads GPUTRAIN_FAULT, so that a malformed one ends the program at its start and not in mid-run. Throws
// Error(kUsage).
void check_faults();

// The fault that the environment asks for at this place, or nullptr. GPUTRAIN_FAULT is read at the first
// call of this function or of check_faults().
const Fault* fault_at(FaultKind kind, const FaultPlace& place);

// Whether the environment asks for a fault of this kind anywhere.
bool asks_for(FaultKind kind);

// Sleeps where the environment asks for it.
void sleep_if_asked(const FaultPlace& place);

}  // namespace gputrain
