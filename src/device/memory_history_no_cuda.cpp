#include "device/memory_history.h"

namespace gputrain::device {

void record_memory_history() {}

std::string memory_snapshot() {
  return "";
}

}  // namespace gputrain::device
