#pragma once

#include "kernels/host_device.h"

#include <cstdint>

namespace gputrain::kernels {

// A bijection of 64-bit words in which each input bit reaches every output bit.
// Source: Steele, Lea, Flood 2014 (SplitMix64), output function "Mix13" of Stafford.
// base/hash.h has it too, without the qualifiers that the device's compiler needs.
GPUTRAIN_HOST_DEVICE inline std::uint64_t mix_bits(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
  return word ^ (word >> 31);
}

// Word number `counter` of the random sequence `seed`: no state, so that any thread computes any word, and
// the same word everywhere. The seed is mixed first, so that the sequences of neighbouring seeds do not
// overlap.
GPUTRAIN_HOST_DEVICE inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  const std::uint64_t key = mix_bits(seed + 0x9E3779B97F4A7C15ull);
  return mix_bits(key + (counter + 1) * 0x9E3779B97F4A7C15ull);
}

// A number in 0 .. bound - 1 from 64 random bits; no value is likelier than another by more than bound /
// 2^64. bound: at least 1. Source: Lemire 2019, without its rejection step.
inline std::uint64_t random_below(std::uint64_t bits, std::uint64_t bound) {
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

}  // namespace gputrain::kernels
