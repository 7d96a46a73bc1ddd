#pragma once

#include "train/records.h"

#include <filesystem>
#include <memory>

namespace gputrain::report {

// metrics.csv, a row for every window, and evals.csv, a row for every evaluation, both in `folder`;
// docs/metrics.md lists the columns. The header is written with the first row: the record of an
// evaluation names its metrics. Throws Error(kFileSystem) naming the file when it cannot be written.
std::unique_ptr<train::Sink> csv_sink(const std::filesystem::path& folder);

}  // namespace gputrain::report
