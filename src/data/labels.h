#pragma once

#include "base/error.h"
#include "base/text.h"

#include <cstdint>
#include <string>

namespace gputrain::data {

// A loss over one class is 0 for every model: nothing would be learned. Throws Error(kData); `labels` names
// where they were read.
inline void check_enough_classes(std::int64_t num_classes, const std::string& labels) {
  if (num_classes >= 2) return;
  throw Error(ExitCode::kData, concat(labels,
                                      ": every label is 0; training needs at least 2 classes; is this "
                                      "the right file, or should data.num_classes be given?"));
}

}  // namespace gputrain::data
