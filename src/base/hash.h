#pragma once

#include <cstdint>
#include <string_view>

namespace gputrain {

// FNV-1a, 64 bits. Pass the hash of what came before to go on with more bytes.
// Source: http://www.isthe.com/chongo/tech/comp/fnv
constexpr std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t before = 0xcbf29ce484222325U) {
  std::uint64_t hash = before;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3U;
  }
  return hash;
}

// One output of SplitMix64 from state `value`: every input bit changes half of the output bits.
// Source: Steele, Lea & Flood 2014, as published by Vigna.
constexpr std::uint64_t splitmix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// A seed from two numbers whose order counts: mix(mix(seed, epoch), sample) seeds a generator per sample.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return splitmix64(splitmix64(a) ^ b);
}

}  // namespace gputrain
