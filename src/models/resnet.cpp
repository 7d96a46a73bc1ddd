#include "models/components.h"
#include "models/shape.h"
#include "nn/layers.h"
#include "nn/recompute.h"

#include <ATen/ops/max_pool2d.h>

#include <array>

// Residual networks with torchvision's names, layout (stride in the 3x3 convolution) and initialisation.
// Source: He et al. 2016, "Deep Residual Learning for Image Recognition".
namespace gputrain::models {
namespace {

enum class Stem { kImageNet, kSmall };

struct ResNetOptions {
  ShapeOptions shape;
  Stem stem = Stem::kImageNet;
  double dropout = 0;
};

void describe(recipe::Visitor& v, ResNetOptions& o) {
  describe_shape(v, o.shape);
  v.one_of(
      "stem", o.stem, {"imagenet", "small"},
      "imagenet: 7x7 convolution of stride 2 and max-pool; small: 3x3 of stride 1, for images up to 64 px");
  v.number("dropout", o.dropout, {.min = 0, .max = 1, .max_open = true}, "",
           "share of what a block hands to its last convolution that is dropped in training");
}

struct BlockShape {
  std::int64_t in;
  std::int64_t width;
  std::int64_t stride;
  double dropout;
};

// What both kinds of block share: the projection of the shortcut where the shape changes.
class Block : public nn::Module {
 protected:
  void add_shortcut(std::int64_t in, std::int64_t out, std::int64_t stride, const nn::Init& init) {
    if (stride == 1 && in == out) return;
    auto projection = std::make_unique<nn::Sequential>();
    const nn::Conv2dShape shape{.in = in, .out = out, .kernel = 1, .stride = stride};
    projection->push(std::make_unique<nn::Conv2d>(shape, init));
    projection->push(std::make_unique<nn::BatchNorm2d>(out));
    downsample_ = &add("downsample", std::move(projection));
  }
  at::Tensor shortcut(const at::Tensor& input) { return downsample_ ? (*downsample_)(input) : input; }

 private:
  nn::Module* downsample_ = nullptr;
};

class BasicBlock : public Block {
 public:
  static constexpr std::int64_t kExpansion = 1;

  BasicBlock(const BlockShape& shape, const nn::Init& init) {
    const auto [in, width, stride, dropout] = shape;
    const nn::Conv2dShape first{.in = in, .out = width, .kernel = 3, .stride = stride, .padding = 1};
    const nn::Conv2dShape second{.in = width, .out = width, .kernel = 3, .padding = 1};
    conv1_ = &add("conv1", std::make_unique<nn::Conv2d>(first, init));
    bn1_ = &add("bn1", std::make_unique<nn::BatchNorm2d>(width));
    conv2_ = &add("conv2", std::make_unique<nn::Conv2d>(second, init));
    bn2_ = &add("bn2", std::make_unique<nn::BatchNorm2d>(width));
    add_shortcut(in, width, stride, init);
    dropout_ = &add("dropout", std::make_unique<nn::Dropout>(dropout));
  }

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    const at::Tensor x = (*dropout_)(nn::conv_norm_relu(*conv1_, *bn1_, input));
    return nn::conv_norm_add_relu(*conv2_, *bn2_, x, shortcut(input));
  }

 private:
  nn::Conv2d *conv1_, *conv2_;
  nn::BatchNorm2d *bn1_, *bn2_;
  nn::Dropout* dropout_;
};

class Bottleneck : public Block {
 public:
  static constexpr std::int64_t kExpansion = 4;

  Bottleneck(const BlockShape& shape, const nn::Init& init) {
    const auto [in, width, stride, dropout] = shape;
    const std::int64_t out = width * kExpansion;
    const nn::Conv2dShape reduce{.in = in, .out = width, .kernel = 1};
    const nn::Conv2dShape middle{.in = width, .out = width, .kernel = 3, .stride = stride, .padding = 1};
    const nn::Conv2dShape expand{.in = width, .out = out, .kernel = 1};
    conv1_ = &add("conv1", std::make_unique<nn::Conv2d>(reduce, init));
    bn1_ = &add("bn1", std::make_unique<nn::BatchNorm2d>(width));
    conv2_ = &add("conv2", std::make_unique<nn::Conv2d>(middle, init));
    bn2_ = &add("bn2", std::make_unique<nn::BatchNorm2d>(width));
    conv3_ = &add("conv3", std::make_unique<nn::Conv2d>(expand, init));
    bn3_ = &add("bn3", std::make_unique<nn::BatchNorm2d>(out));
    add_shortcut(in, out, stride, init);
    dropout_ = &add("dropout", std::make_unique<nn::Dropout>(dropout));
  }

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = nn::conv_norm_relu(*conv1_, *bn1_, input);
    x = (*dropout_)(nn::conv_norm_relu(*conv2_, *bn2_, x));
    return nn::conv_norm_add_relu(*conv3_, *bn3_, x, shortcut(input));
  }

 private:
  nn::Conv2d *conv1_, *conv2_, *conv3_;
  nn::BatchNorm2d *bn1_, *bn2_, *bn3_;
  nn::Dropout* dropout_;
};

using Depths = std::array<std::int64_t, 4>;  // blocks of each stage

template <class Block>
class ResNet : public nn::Module {
 public:
  ResNet(const Depths& depths, const ResNetOptions& options, const ModelContext& context)
      : stem_(options.stem) {
    const std::int64_t channels = image_shape(context).channels;
    const nn::Conv2dShape stem =
        stem_ == Stem::kImageNet
            ? nn::Conv2dShape{.in = channels, .out = 64, .kernel = 7, .stride = 2, .padding = 3}
            : nn::Conv2dShape{.in = channels, .out = 64, .kernel = 3, .padding = 1};
    conv1_ = &add("conv1", std::make_unique<nn::Conv2d>(stem, context.init));
    bn1_ = &add("bn1", std::make_unique<nn::BatchNorm2d>(64));
    std::int64_t in = 64;
    for (std::size_t i = 0; i < depths.size(); ++i) {
      const std::int64_t width = std::int64_t{64} << i;
      const BlockShape shape{.in = in, .width = width, .stride = i == 0 ? 1 : 2, .dropout = options.dropout};
      add_stage("layer" + std::to_string(i + 1), shape, depths[i], context.init);
      in = width * Block::kExpansion;
    }
    fc_ = &add("fc", std::make_unique<nn::Linear>(in, output_classes(options.shape, context), context.init));
  }

  nn::Blocks* blocks() override { return &blocks_; }

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = nn::conv_norm_relu(*conv1_, *bn1_, input);
    if (stem_ == Stem::kImageNet) x = at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
    return (*fc_)(nn::global_average_pool(blocks_(x)));
  }

 private:
  void add_stage(const std::string& name, BlockShape shape, std::int64_t depth, const nn::Init& init) {
    nn::Group& stage = add(name, std::make_unique<nn::Group>());
    for (std::int64_t i = 0; i < depth; ++i) {
      nn::Module& block = stage.push(std::make_unique<Block>(shape, init));
      blocks_.add(name + "." + std::to_string(i), [&block](const at::Tensor& x) { return block(x); });
      shape.in = shape.width * Block::kExpansion;
      shape.stride = 1;
    }
  }

  Stem stem_;
  nn::Conv2d* conv1_;
  nn::BatchNorm2d* bn1_;
  nn::Blocks blocks_;  // of all stages
  nn::Linear* fc_;
};

template <class Block, std::int64_t... Depth>
Model build(const ResNetOptions& options, const ModelContext& context) {
  return std::make_unique<ResNet<Block>>(Depths{Depth...}, options, context);
}

}  // namespace

ModelComponent resnet18() {
  return recipe::component("resnet18", "residual network, 11.7 M parameters", build<BasicBlock, 2, 2, 2, 2>);
}
ModelComponent resnet34() {
  return recipe::component("resnet34", "residual network, 21.8 M parameters", build<BasicBlock, 3, 4, 6, 3>);
}
ModelComponent resnet50() {
  return recipe::component("resnet50", "residual network, 25.6 M parameters", build<Bottleneck, 3, 4, 6, 3>);
}
ModelComponent resnet101() {
  return recipe::component("resnet101", "residual network, 44.5 M parameters",
                           build<Bottleneck, 3, 4, 23, 3>);
}
ModelComponent resnet152() {
  return recipe::component("resnet152", "residual network, 60.2 M parameters",
                           build<Bottleneck, 3, 8, 36, 3>);
}

}  // namespace gputrain::models
