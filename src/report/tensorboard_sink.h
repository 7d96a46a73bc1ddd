#pragma once

#include "report/clock.h"
#include "train/records.h"

#include <filesystem>
#include <memory>
#include <string>

namespace gputrain::report {

// events.out.tfevents.<unix time>.<host>.<pid>.0, the name TensorBoard looks for.
std::string event_file_name(double unix_time);

// A TensorBoard event file of scalars; docs/metrics.md lists the tags. Every record is written at once.
// Throws Error(kFileSystem) naming the file when it cannot be written.
std::unique_ptr<train::Sink> tensorboard_sink(const std::filesystem::path& event_file,
                                              UnixClock clock = unix_seconds);

}  // namespace gputrain::report
