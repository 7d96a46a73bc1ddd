#pragma once

#include "data/data_set.h"

#include <memory>

namespace gputrain::data {

// `split`, in which samples that GPUTRAIN_FAULT names cannot be read: batch() throws Error(kData) for them.
// Itself where none is named. phase: training or validation.
std::unique_ptr<Split> with_faults(std::unique_ptr<Split> split, const char* phase);

}  // namespace gputrain::data
