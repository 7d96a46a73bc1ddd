#include "nn/layers.h"

#include "base/error.h"
#include "nn/recompute.h"

#include <ATen/Context.h>
#include <ATen/ops/_batch_norm_impl_index.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/batch_norm_elemt.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

namespace gputrain::nn {
namespace {

constexpr double kEpsilon = 1e-5;  // of batch normalisation

}  // namespace

Conv2d::Conv2d(const Conv2dShape& shape, const Init& init)
    : weight_(add_parameter("weight",
                            kaiming_normal_fan_out({shape.out, shape.in, shape.kernel, shape.kernel}, init))),
      stride_(shape.stride),
      padding_(shape.padding) {}

at::Tensor Conv2d::forward(const at::Tensor& input) {
  // Height and width are given one by one: LibTorch's count of operations reads them so.
  return at::conv2d(input, weight_, /*bias=*/{}, {stride_, stride_}, {padding_, padding_},
                    /*dilation=*/{1, 1});
}

BatchNorm2d::BatchNorm2d(std::int64_t channels)
    : weight_(add_parameter("weight", at::ones({channels}))),
      bias_(add_parameter("bias", at::zeros({channels}))),
      running_mean_(add_buffer("running_mean", at::zeros({channels}))),
      running_var_(add_buffer("running_var", at::ones({channels}))),
      num_batches_tracked_(add_buffer("num_batches_tracked", at::zeros({}, at::kLong))) {}

at::Tensor BatchNorm2d::forward(const at::Tensor& input) {
  if (training() && input.numel() == input.size(1)) {
    throw Error(
        ExitCode::kUsage,
        "batch normalisation gets one value per channel, which has no variance: a micro-batch of 1 sample "
        "whose images have shrunk to 1x1 px; expected a micro_batch_size that leaves at least 2 samples "
        "for the last batch of the epoch, or larger images");
  }
  if (!training()) return std::get<0>(normalise(input, running_mean_, running_var_));
  const auto first = [&] {
    const bool again = is_recomputing();
    if (!again) add_passes(1);
    const auto [output, mean, inverse_deviation, reserve, kind] =
        again ? normalise(input, {}, {}) : normalise(input, running_mean_, running_var_);
    return Remembered{output, {mean, inverse_deviation}};
  };
  // The batch's statistics are known, so that the input is read once and not twice. It rounds otherwise.
  const auto again = [&](const std::vector<at::Tensor>& statistics) {
    const bool applies = input.is_cuda() && !at::globalContext().deterministicAlgorithms();
    if (!applies) return std::get<0>(normalise(input, {}, {}));
    return at::batch_norm_elemt(input, weight_, bias_, statistics[0], statistics[1], kEpsilon);
  };
  return remember(input, /*is_dear=*/false, first, again);
}

// As at::batch_norm: output, mean and 1 / deviation of the batch ...
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, std::int64_t> BatchNorm2d::normalise(
    const at::Tensor& input, const at::Tensor& running_mean, const at::Tensor& running_var) const {
  return at::_batch_norm_impl_index(input, weight_, bias_, running_mean, running_var, training(),
                                    /*momentum=*/0.1, kEpsilon, /*cudnn_enabled=*/true);
}

void BatchNorm2d::add_passes(std::int64_t passes) {
  *num_batches_tracked_.mutable_data_ptr<std::int64_t>() += passes;
}

Linear::Linear(std::int64_t in, std::int64_t out, const Init& init)
    : weight_(add_parameter("weight", uniform_fan_in({out, in}, in, init))),
      bias_(add_parameter("bias", uniform_fan_in({out}, in, init))) {}

at::Tensor Linear::forward(const at::Tensor& input) {
  return at::linear(input, weight_, bias_);
}

Embedding::Embedding(std::int64_t rows, std::int64_t width, const Init& init)
    : weight_(add_parameter("weight", standard_normal({rows, width}, init))) {}

at::Tensor Embedding::forward(const at::Tensor& input) {
  return at::embedding(weight_, input);
}

at::Tensor Dropout::forward(const at::Tensor& input) {
  return share_ > 0 && training() ? at::dropout(input, share_, /*train=*/true) : input;
}

at::Tensor conv_norm_relu(Conv2d& conv, BatchNorm2d& norm, const at::Tensor& input) {
  at::Tensor x = norm(conv(input));
  return at::relu_(x);
}

at::Tensor conv_norm_add_relu(Conv2d& conv, BatchNorm2d& norm, const at::Tensor& input,
                              const at::Tensor& shortcut) {
  at::Tensor x = norm(conv(input));
  x.add_(shortcut);
  return at::relu_(x);
}

at::Tensor global_average_pool(const at::Tensor& input) {
  return at::flatten(at::adaptive_avg_pool2d(input, {1, 1}), 1);
}

}  // namespace gputrain::nn
