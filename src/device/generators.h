#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

namespace gputrain::device {

// Seeds the default generator of the CPU and, when `device` is a GPU, of that GPU, so that what is drawn next
// depends on (seed, position) alone. Every pair gives a sequence of its own, neighbours are unrelated.
// Cheap enough for each micro-batch.
void seed_generators(at::Device device, std::uint64_t seed, std::uint64_t position);

// The states of these generators, one after the other: equal bytes, equal draws to come.
std::vector<std::uint8_t> generator_state(at::Device device);

// Sets them to such a state, of the same device.
void set_generator_state(at::Device device, const std::vector<std::uint8_t>& state);

}  // namespace gputrain::device
