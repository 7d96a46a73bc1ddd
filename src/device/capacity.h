#pragma once

#include <cstdint>

namespace gputrain::device {

struct Capacity {
  std::int64_t free = 0;  // bytes
  std::int64_t total = 0;
};

}  // namespace gputrain::device
