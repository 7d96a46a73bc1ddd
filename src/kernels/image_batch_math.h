#pragma once

#include "kernels/host_device.h"
#include "kernels/random_math.h"

#include <cstdint>

namespace gputrain::kernels {

// One element of an image as the model reads it. On the device multiplication and addition round separately,
// as they do on a CPU whose compiler fuses nothing.
GPUTRAIN_HOST_DEVICE inline float normalised(std::uint8_t value, float scale, float shift) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(static_cast<float>(value), scale), shift);
#else
  const float scaled = static_cast<float>(value) * scale;
  return scaled + shift;
#endif
}

// Byte number `index` of the random bytes of `seed`: eight from each word, lowest first.
GPUTRAIN_HOST_DEVICE inline std::uint8_t random_byte(std::uint64_t word, std::int64_t index) {
  return static_cast<std::uint8_t>(word >> (8 * (index & 7)));
}

}  // namespace gputrain::kernels
