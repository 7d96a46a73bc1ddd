#pragma once

#include <string>
#include <vector>

namespace gputrain::device {

// LibTorch's caching allocator takes GPU memory in segments that grow. Call before CUDA starts. What the
// environment says of the allocator (PYTORCH_ALLOC_CONF) is the user's own choice, and holds instead. Returns
// notices.
std::vector<std::string> use_expandable_segments();

}  // namespace gputrain::device
