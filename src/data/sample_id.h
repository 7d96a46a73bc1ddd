#pragma once

#include "base/text.h"

#include <cstdint>
#include <stdexcept>

namespace gputrain::data {

// Throws std::out_of_range, as Split::batch does, for a number outside a split of `size` samples.
inline void check_sample_id(std::int64_t id, std::int64_t size) {
  if (id < 0 || id >= size) throw std::out_of_range(concat("sample ", id, " of a split of ", size));
}

}  // namespace gputrain::data
