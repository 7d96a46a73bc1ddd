#pragma once

#include "kernels/stream.h"

#include <cstdint>

namespace gputrain::kernels {

// Operands of gather_images. All pointers are in the memory of one device.
struct ImageGather {
  const std::uint8_t* images = nullptr;  // [stored, pixels, channels]
  const std::int64_t* ids = nullptr;     // [count], each in 0 .. stored - 1: the caller checks
  const float* scale = nullptr;          // [channels]
  const float* shift = nullptr;          // [channels]
  float* out = nullptr;                  // [count, pixels, channels]
  std::int64_t count = 0;
  std::int64_t pixels = 0;  // height * width
  std::int64_t channels = 0;
};

// out[n][p][c] = images[ids[n]][p][c] * scale[c] + shift[c].
// The functions for CUDA queue their work on `stream` of the current device and return; they throw CudaError
// when the launch fails, and Error(kUsage) in a build without CUDA. A count of 0 does nothing.
void gather_images_cpu(const ImageGather& gather);
void gather_images_cuda(const ImageGather& gather, Stream stream);

// out[n] = labels[ids[n]]. ids, out: [count]; ids as in gather_images.
void gather_labels_cpu(const std::uint8_t* labels, const std::int64_t* ids, std::int64_t count,
                       std::int64_t* out);
void gather_labels_cpu(const std::int64_t* labels, const std::int64_t* ids, std::int64_t count,
                       std::int64_t* out);
void gather_labels_cuda(const std::uint8_t* labels, const std::int64_t* ids, std::int64_t count,
                        std::int64_t* out, Stream stream);
void gather_labels_cuda(const std::int64_t* labels, const std::int64_t* ids, std::int64_t count,
                        std::int64_t* out, Stream stream);

// Fills out[count] with the random bytes of `seed`: the same ones on every device.
void fill_random_cpu(std::uint8_t* out, std::int64_t count, std::uint64_t seed);
void fill_random_cuda(std::uint8_t* out, std::int64_t count, std::uint64_t seed, Stream stream);

}  // namespace gputrain::kernels
