#include "device/generators.h"

#include "base/hash.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <mutex>

namespace gputrain::device {
namespace {

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

// Returns what follows the bytes that it took.
const std::uint8_t* set_state(at::Device device, const std::uint8_t* bytes) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  std::memcpy(state.mutable_data_ptr(), bytes, state.nbytes());
  generator.set_state(state);
  return bytes + state.nbytes();
}

}  // namespace

void seed_generators(at::Device device, std::uint64_t seed_value, std::uint64_t position) {
  const std::uint64_t mixed = mix(seed_value, position);
  seed(at::Device(at::kCPU), mixed);
  if (!device.is_cpu()) seed(device, mixed);
}

std::vector<std::uint8_t> generator_state(at::Device device) {
  std::vector<std::uint8_t> bytes;
  append_state(at::Device(at::kCPU), bytes);
  if (!device.is_cpu()) append_state(device, bytes);
  return bytes;
}

void set_generator_state(at::Device device, const std::vector<std::uint8_t>& state) {
  const std::uint8_t* rest = state.data();
  rest = set_state(at::Device(at::kCPU), rest);
  if (!device.is_cpu()) rest = set_state(device, rest);
  TORCH_INTERNAL_ASSERT(rest == state.data() + state.size());
}

}  // namespace gputrain::device
