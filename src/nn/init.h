#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gputrain::nn {

// What a new layer is made with: on the CPU, so that weights do not depend on the device that trains.
struct Init {
  at::Generator generator;
};

// A generator for initialisation alone.
Init init_on_cpu(std::uint64_t seed);

// Convolution weights of residual networks: normal, deviation sqrt(2 / fan_out), fan_out = out * kernel area.
// Source: He et al. 2015, and torchvision's ResNet.
// `shape` is [out, in, height, width]; float32.
at::Tensor kaiming_normal_fan_out(at::IntArrayRef shape, const Init& init);

// PyTorch's default for embeddings: normal, mean 0, deviation 1. float32.
at::Tensor standard_normal(at::IntArrayRef shape, const Init& init);

// PyTorch's default for convolutions, linear layers and their biases: uniform in +-1/sqrt(fan_in).
at::Tensor uniform_fan_in(at::IntArrayRef shape, std::int64_t fan_in, const Init& init);

}  // namespace gputrain::nn
