#pragma once

struct CUstream_st;

namespace gputrain::kernels {

// cudaStream_t, declared without CUDA's headers so that builds without CUDA see the same functions.
// Null is the default stream.
using Stream = CUstream_st*;

}  // namespace gputrain::kernels
