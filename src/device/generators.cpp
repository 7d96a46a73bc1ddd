#include "device/generators.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <mutex>

namespace gputrain::device {
namespace {

// The finaliser of SplitMix64: a bijection in which every input bit moves about half of the output bits.
// Source: Steele, Lea, Flood 2014; constants of Vigna's splitmix64.c.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

void seed(at::Device device, std::uint64_t value) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(value);
}

void append_state(at::Device device, std::vector<std::uint8_t>& bytes) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();  // uint8 on the host, whatever the device
  const auto* data = static_cast<const std::uint8_t*>(state.const_data_ptr());
  bytes.insert(bytes.end(), data, data + state.numel());
}

}  // namespace

void seed_generators(at::Device device, std::uint64_t seed_value, std::uint64_t position) {
  const std::uint64_t mixed = mix(mix(seed_value) ^ position);
  seed(at::Device(at::kCPU), mixed);
  if (!device.is_cpu()) seed(device, mixed);
}

std::vector<std::uint8_t> generator_state(at::Device device) {
  std::vector<std::uint8_t> bytes;
  append_state(at::Device(at::kCPU), bytes);
  if (!device.is_cpu()) append_state(device, bytes);
  return bytes;
}

}  // namespace gputrain::device
