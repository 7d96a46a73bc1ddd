#pragma once

#include <vector>

namespace gputrain::device {

// Compute capabilities that the kernels of this program were compiled for, ascending: 86 is 8.6. Empty: built
// without CUDA. Whether the newest is also there as PTX, which the driver translates, is not known.
std::vector<int> compiled_capabilities();

}  // namespace gputrain::device
