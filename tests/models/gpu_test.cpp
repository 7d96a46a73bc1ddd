#include "support/gpu.h"

#include "models/tiny.h"
#include "nn/layers.h"
#include "support/catch.h"

#include <ATen/Context.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

namespace gputrain::models {
namespace {

const at::Device kGpu(at::kCUDA, 0);

at::Tensor images(std::int64_t batch) {
  return at::randn({batch, 3, 16, 17}, nn::init_on_cpu(2).generator)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

// More than one sample, channel and pixel, so that no other order looks the same.
bool is_channels_last(const at::Tensor& x) {
  return x.size(0) > 1 && x.size(1) > 1 && x.size(2) * x.size(3) > 1 &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) && !x.is_contiguous();
}

at::Tensor resnet18_logits(at::Device device, bool training) {
  const c10::AutoGradMode no_grad(false);
  const Model model = tiny_model("resnet18", {3, 16, 17}, 5, 1, {{"stem", "small"}});
  model->to(device, /*channels_last=*/true);
  model->train(training);
  const at::Tensor logits = (*model)(images(4).to(device));
  CHECK(logits.device() == device);
  return logits.cpu();
}

}  // namespace

// A residual block and the stem's pooling: layer by layer, since a model shows no activations.
TEST_CASE("layers on the GPU: channels-last goes in and comes out of every layer", "[models][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const nn::Init init = nn::init_on_cpu(1);
  nn::Conv2d conv1({.in = 3, .out = 8, .kernel = 3, .padding = 1}, init);
  nn::Conv2d conv2({.in = 8, .out = 16, .kernel = 3, .stride = 2, .padding = 1}, init);
  nn::Conv2d projection({.in = 8, .out = 16, .kernel = 1, .stride = 2}, init);
  nn::BatchNorm2d norm1(8), norm2(16);
  const bool training = GENERATE(true, false);
  INFO((training ? "training" : "evaluation"));
  for (nn::Module* layer : std::initializer_list<nn::Module*>{&conv1, &conv2, &projection, &norm1, &norm2}) {
    layer->to(kGpu, /*channels_last=*/true);
    layer->train(training);
  }

  const at::Tensor input = images(2).to(kGpu);
  CHECK(is_channels_last(input));
  CHECK(is_channels_last(conv1.named_parameters()[0].second));
  const at::Tensor convolved = conv1(input);
  CHECK(is_channels_last(convolved));
  CHECK(is_channels_last(norm1(convolved)));
  const at::Tensor x = nn::conv_norm_relu(conv1, norm1, input);
  CHECK(is_channels_last(x));
  CHECK(is_channels_last(at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1)));
  const at::Tensor shortcut = projection(x);
  CHECK(is_channels_last(shortcut));
  CHECK(is_channels_last(nn::conv_norm_add_relu(conv2, norm2, x, shortcut)));
}

TEST_CASE("resnet18 on the GPU: logits are the CPU's", "[models][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  // TF32 rounds factors to 11 bits, an error of 5e-4 each, which 18 layers add up to more than the tolerance.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  const bool training = GENERATE(true, false);
  INFO((training ? "training" : "evaluation"));
  const at::Tensor expected = resnet18_logits(at::kCPU, training);
  const at::Tensor found = resnet18_logits(kGpu, training);
  const auto scale = expected.abs().max().item<double>();
  REQUIRE(scale > 0);
  CHECK(found.sub(expected).abs().max().item<double>() < 1e-3 * scale);
}

}  // namespace gputrain::models
