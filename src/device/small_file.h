#pragma once

#include <optional>
#include <string>

namespace gputrain::device {

// The whole of a small text file (those of /proc and /sys), without white space at its end.
// Absent when it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);

}  // namespace gputrain::device
