#include "nn/init.h"

#include "base/hash.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <cmath>

namespace gputrain::nn {

Init init_on_cpu(std::uint64_t seed) {
  return {at::detail::createCPUGenerator(mix(seed, hash_bytes("initialisation")))};
}

at::Tensor kaiming_normal_fan_out(at::IntArrayRef shape, const Init& init) {
  const auto fan_out = static_cast<double>(shape[0] * shape[2] * shape[3]);
  return at::empty(shape).normal_(0, std::sqrt(2 / fan_out), init.generator);
}

at::Tensor standard_normal(at::IntArrayRef shape, const Init& init) {
  return at::empty(shape).normal_(0, 1, init.generator);
}

at::Tensor uniform_fan_in(at::IntArrayRef shape, std::int64_t fan_in, const Init& init) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return at::empty(shape).uniform_(-bound, bound, init.generator);
}

}  // namespace gputrain::nn
