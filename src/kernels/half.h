#pragma once

#include "kernels/host_device.h"

#include <cstdint>
#include <cstring>

// float32 to and from the bits of float16 (IEEE 754 binary16) and bfloat16: in integers, so that host and
// device give the same bits. What is not a number stays so; its payload is cut.
namespace gputrain::kernels {

GPUTRAIN_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

GPUTRAIN_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

namespace half_bits {
inline constexpr std::uint32_t kMagnitude = 0x7fffffff;
inline constexpr std::uint32_t kInfinity = 0x7f800000;
inline constexpr std::uint32_t kHalfOverflow = 0x477ff000;    // 65520: the largest float16 and half a unit
inline constexpr std::uint32_t kHalfNormal = 0x38800000;      // 2^-14, the smallest normal float16
inline constexpr std::uint32_t kHalfExponents = 0x38000000;   // the exponents' biases differ by 127 - 15
inline constexpr std::uint32_t kBfloatOverflow = 0x7f7f8000;  // the largest bfloat16 and half a unit
}  // namespace half_bits

GPUTRAIN_HOST_DEVICE inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7fffU;
  if (magnitude < 0x400)  // subnormal: units of 2^-24
    return float_of(sign | bits_of(static_cast<float>(magnitude) * 0x1p-24F));
  if (magnitude >= 0x7c00) return float_of(sign | half_bits::kInfinity | magnitude << 13);
  return float_of(sign | ((magnitude << 13) + half_bits::kHalfExponents));
}

// To the nearest, ties to even.
GPUTRAIN_HOST_DEVICE inline std::uint16_t float_to_half(float value) {
  const std::uint32_t magnitude = bits_of(value) & half_bits::kMagnitude;
  const std::uint32_t sign = (bits_of(value) ^ magnitude) >> 16;
  std::uint32_t half = 0;
  if (magnitude > half_bits::kInfinity) {
    half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  } else if (magnitude >= half_bits::kHalfOverflow) {
    half = 0x7c00;
  } else if (magnitude < half_bits::kHalfNormal) {
    // A unit of 0.5F is a unit of the subnormals, 2^-24: the addition rounds.
    half = bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F);
  } else {
    half = (magnitude - half_bits::kHalfExponents + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

GPUTRAIN_HOST_DEVICE inline float bfloat16_to_float(std::uint16_t half) {
  return float_of(static_cast<std::uint32_t>(half) << 16);
}

// To the nearest, ties to even.
GPUTRAIN_HOST_DEVICE inline std::uint16_t float_to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & half_bits::kMagnitude) > half_bits::kInfinity)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Stochastic rounding: to one of the two neighbours of `value`, the nearer the likelier, so that the mean
// over `random` is `value`. What a type holds exactly stays. Up to half a unit beyond the largest number the
// result is that number; from there on, and for what is not finite, it is that of rounding to the nearest.
GPUTRAIN_HOST_DEVICE inline std::uint16_t float_to_half(float value, std::uint64_t random) {
  const std::uint32_t magnitude = bits_of(value) & half_bits::kMagnitude;
  const std::uint32_t sign = (bits_of(value) ^ magnitude) >> 16;
  if (magnitude >= half_bits::kHalfOverflow) return float_to_half(value);
  std::uint32_t half = 0;
  if (magnitude < half_bits::kHalfNormal) {
    const float units = float_of(magnitude) * 0x1p24F;  // below 1024; this and the rest are exact
    half = static_cast<std::uint32_t>(units);
    const float rest = units - static_cast<float>(half);
    const std::uint64_t threshold = static_cast<std::uint64_t>(rest * 0x1p32F);
    half += (random & 0xffffffffU) < threshold;
  } else {
    half = (magnitude - half_bits::kHalfExponents + static_cast<std::uint32_t>(random & 0x1fff)) >> 13;
    half = half < 0x7bff ? half : 0x7bff;
  }
  return static_cast<std::uint16_t>(sign | half);
}

GPUTRAIN_HOST_DEVICE inline std::uint16_t float_to_bfloat16(float value, std::uint64_t random) {
  const std::uint32_t magnitude = bits_of(value) & half_bits::kMagnitude;
  const std::uint32_t sign = (bits_of(value) ^ magnitude) >> 16;
  if (magnitude >= half_bits::kBfloatOverflow) return float_to_bfloat16(value);
  std::uint32_t half = (magnitude + static_cast<std::uint32_t>(random & 0xffff)) >> 16;
  half = half < 0x7f7f ? half : 0x7f7f;
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace gputrain::kernels
