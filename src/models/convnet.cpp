#include "base/error.h"
#include "models/components.h"
#include "models/shape.h"
#include "nn/layers.h"
#include "nn/recompute.h"

#include <ATen/ops/max_pool2d.h>

namespace gputrain::models {
namespace {

struct ConvNetOptions {
  ShapeOptions shape;
  std::int64_t width = 32;
  std::int64_t stages = 3;
};

void describe(recipe::Visitor& v, ConvNetOptions& o) {
  describe_shape(v, o.shape);
  v.integer("width", o.width, {1, 4096}, "channels",
            "channels of the first stage; each later one has twice as many");
  v.integer("stages", o.stages, {1, 6}, "", "3x3 convolutions, with the image halved between two of them");
}

void check_size(const ConvNetOptions& options, const ModelContext& context) {
  const std::int64_t smallest = std::int64_t{1} << (options.stages - 1);
  const auto [channels, height, width] = image_shape(context);
  if (height >= smallest && width >= smallest) return;
  throw SettingError(
      "model.stages",
      concat("is ", options.stages, ", which halves images ", options.stages - 1, " times, but they are ",
             height, "x", width, " px; expected fewer stages or images of at least ", smallest, " px"));
}

// For images of 28 to 64 px: per stage a 3x3 convolution, normalisation and ReLU, halving between stages,
// then the mean over the image and a linear classifier. Parameters: conv1, bn1, conv2, bn2 ..., fc.
class ConvNet : public nn::Module {
 public:
  ConvNet(const ConvNetOptions& options, const ModelContext& context) {
    check_size(options, context);
    std::int64_t in = image_shape(context).channels;
    std::int64_t out = options.width;
    for (std::int64_t stage = 1; stage <= options.stages; ++stage, in = out, out *= 2) {
      const std::string number = std::to_string(stage);
      const nn::Conv2dShape shape{.in = in, .out = out, .kernel = 3, .padding = 1};
      nn::Conv2d& conv = add("conv" + number, std::make_unique<nn::Conv2d>(shape, context.init));
      nn::BatchNorm2d& norm = add("bn" + number, std::make_unique<nn::BatchNorm2d>(out));
      stages_.add("conv" + number, [&conv, &norm, halves = stage > 1](const at::Tensor& x) {
        return nn::conv_norm_relu(conv, norm, halves ? at::max_pool2d(x, /*kernel_size=*/2) : x);
      });
    }
    head_ =
        &add("fc", std::make_unique<nn::Linear>(in, output_classes(options.shape, context), context.init));
  }

  nn::Blocks* blocks() override { return &stages_; }

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    return (*head_)(nn::global_average_pool(stages_(input)));
  }

 private:
  nn::Blocks stages_;
  nn::Linear* head_;
};

Model build(const ConvNetOptions& options, const ModelContext& context) {
  return std::make_unique<ConvNet>(options, context);
}

}  // namespace

ModelComponent convnet() {
  return recipe::component("convnet", "small convolutional network for images of 28 to 64 px", build);
}

}  // namespace gputrain::models
