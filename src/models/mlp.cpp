#include "models/components.h"
#include "models/shape.h"
#include "nn/layers.h"
#include "nn/recompute.h"

#include <ATen/ops/flatten.h>
#include <ATen/ops/relu.h>

namespace gputrain::models {
namespace {

struct MlpOptions {
  ShapeOptions shape;
  std::vector<std::int64_t> hidden = {256, 128};
};

void describe(recipe::Visitor& v, MlpOptions& o) {
  describe_shape(v, o.shape);
  v.integers("hidden", o.hidden, {1, 1e6}, "units", "width of each hidden layer; [] is a linear classifier");
}

// Parameters are named layers.0.weight, layers.0.bias, layers.1.weight ...
class Mlp : public nn::Module {
 public:
  Mlp(const MlpOptions& options, const ModelContext& context) {
    auto layers = std::make_unique<nn::Group>();
    std::int64_t width = 1;
    for (const std::int64_t extent : context.sample_shape) width *= extent;
    for (const std::int64_t next : options.hidden) {
      nn::Module& layer = layers->push(std::make_unique<nn::Linear>(width, next, context.init));
      hidden_.add("layers." + std::to_string(hidden_.size()),
                  [&layer](const at::Tensor& x) { return at::relu(layer(x)); });
      width = next;
    }
    head_ = &layers->push(
        std::make_unique<nn::Linear>(width, output_classes(options.shape, context), context.init));
    add("layers", std::move(layers));
  }

  nn::Blocks* blocks() override { return &hidden_; }

 protected:
  at::Tensor forward(const at::Tensor& input) override { return (*head_)(hidden_(at::flatten(input, 1))); }

 private:
  nn::Blocks hidden_;
  nn::Module* head_;
};

Model build(const MlpOptions& options, const ModelContext& context) {
  return std::make_unique<Mlp>(options, context);
}

}  // namespace

ModelComponent mlp() {
  return recipe::component("mlp", "fully connected network with ReLU", build);
}

}  // namespace gputrain::models
