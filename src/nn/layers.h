#pragma once

#include "nn/init.h"
#include "nn/module.h"

#include <cstdint>
#include <memory>
#include <tuple>

namespace gputrain::nn {

struct Conv2dShape {
  std::int64_t in;
  std::int64_t out;
  std::int64_t kernel;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

// Convolution without bias. [batch, in, height, width] -> [batch, out, ...].
// Parameter `weight` [out, in, kernel, kernel].
class Conv2d : public Module {
 public:
  Conv2d(const Conv2dShape& shape, const Init& init);

 protected:
  at::Tensor forward(const at::Tensor& input) override;
  bool is_dear() const override { return true; }

 private:
  at::Tensor weight_;
  std::int64_t stride_;
  std::int64_t padding_;
};

// Batch normalisation over [batch, channels, height, width]; statistics are per forward pass, so per
// micro-batch. Parameters `weight`, `bias`; buffers `running_mean`, `running_var`, `num_batches_tracked`. The
// last one is int64 on the host, whatever the device: counting there launches nothing. Throws Error(kUsage)
// in training when there is one value per channel, which has no variance. Source: Ioffe & Szegedy 2015;
// epsilon 1e-5, momentum 0.1, unbiased running variance, as PyTorch.
class BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(std::int64_t channels);

 protected:
  at::Tensor forward(const at::Tensor& input) override;
  bool keeps_float32() const override { return true; }
  void add_passes(std::int64_t passes) override;

 private:
  std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, std::int64_t> normalise(
      const at::Tensor& input, const at::Tensor& running_mean, const at::Tensor& running_var) const;

  at::Tensor weight_, bias_, running_mean_, running_var_, num_batches_tracked_;
};

// input @ weight^T + bias. Parameters `weight` [out, in], `bias` [out].
class Linear : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, const Init& init);

 protected:
  at::Tensor forward(const at::Tensor& input) override;
  bool is_dear() const override { return true; }

 private:
  at::Tensor weight_, bias_;
};

// A row of `weight` [rows, width] for each number: [...], int64, from 0 to rows - 1 -> [..., width]. Whether
// the numbers are in that range is for the data to check: a GPU cannot say which one was not. Source:
// PyTorch's Embedding, its initialisation included (normal, deviation 1).
class Embedding : public Module {
 public:
  Embedding(std::int64_t rows, std::int64_t width, const Init& init);

 protected:
  at::Tensor forward(const at::Tensor& input) override;

 private:
  at::Tensor weight_;
};

// In training each element becomes 0 with probability `share`, drawn from the device's default generator, and
// the others grow by 1 / (1 - share). Any shape. Source: Srivastava et al. 2014.
class Dropout : public Module {
 public:
  explicit Dropout(double share) : share_(share) {}

 protected:
  at::Tensor forward(const at::Tensor& input) override;

 private:
  double share_;
};

// relu(norm(conv(x))), or relu(norm(conv(x)) + shortcut): the unit that a fused kernel replaces. ReLU works
// in place on the normalisation's output, which that one's backward does not need.
at::Tensor conv_norm_relu(Conv2d& conv, BatchNorm2d& norm, const at::Tensor& input);
at::Tensor conv_norm_add_relu(Conv2d& conv, BatchNorm2d& norm, const at::Tensor& input,
                              const at::Tensor& shortcut);

// Mean over height and width: [batch, channels, height, width] -> [batch, channels].
at::Tensor global_average_pool(const at::Tensor& input);

}  // namespace gputrain::nn
