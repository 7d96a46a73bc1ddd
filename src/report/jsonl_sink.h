#pragma once

#include "report/clock.h"
#include "train/records.h"

#include <filesystem>
#include <memory>

namespace gputrain::report {

// metrics.jsonl: one JSON object a line for the start, every window, evaluation and notice, and the
// summary; docs/metrics.md lists the fields. A line is one write, so a killed run loses at most the
// current one. Appends. Throws Error(kFileSystem) naming the file when it cannot be written.
std::unique_ptr<train::Sink> jsonl_sink(const std::filesystem::path& path, UnixClock clock = unix_seconds);

}  // namespace gputrain::report
