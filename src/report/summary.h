#pragma once

#include "train/records.h"

#include <string>
#include <string_view>

namespace gputrain::report {

// "stopped by SIGINT", …
std::string_view to_text(train::StopReason reason);
// The word that JSON carries: epochs, max_steps, max_time, interrupted, terminated, not_finite,
// early_stopped.
std::string_view to_word(train::StopReason reason);
std::string_view to_word(train::SkipReason reason);  // not_finite, no_targets

// What the end of a run shows: several lines, each ended by a newline.
std::string summary_text(const train::RunInfo& info, const train::RunSummary& summary);

// The same as one JSON object on one line; docs/metrics.md lists the fields.
std::string summary_json(const train::RunInfo& info, const train::RunSummary& summary);

}  // namespace gputrain::report
