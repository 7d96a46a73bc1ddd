#pragma once

// Marks element maths that serves a CUDA kernel and its CPU reference alike.
#ifdef __CUDACC__
#define GPUTRAIN_HOST_DEVICE __host__ __device__
#else
#define GPUTRAIN_HOST_DEVICE
#endif
