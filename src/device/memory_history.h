#pragma once

#include <string>

// memory_history_cuda.cpp asks LibTorch's caching allocator, memory_history_no_cuda.cpp has none to ask.
namespace gputrain::device {

// From now on the caching allocator of every GPU takes down what it hands out and takes back, the last
// 100,000 times, each with the functions that asked. CUDA has been started.
void record_memory_history();

// What was taken down and what is held now: a pickle as pytorch.org/memory_viz reads it. Takes seconds.
std::string memory_snapshot();

}  // namespace gputrain::device
