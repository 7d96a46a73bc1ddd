#pragma once

#include "train/records.h"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace gputrain::report {

// train.log: each line that the terminal shows, with date, time and level in front of it.
// Appends to what is there. Throws Error(kFileSystem) naming the file when it cannot be written.
std::unique_ptr<train::Sink> log_file(const std::filesystem::path& path, std::int64_t log_every);

}  // namespace gputrain::report
