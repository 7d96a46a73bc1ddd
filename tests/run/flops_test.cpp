#include "run/flops.h"

#include "models/model.h"
#include "nn/module.h"
#include "support/catch.h"
#include "support/settings.h"

#include <ATen/ops/ones.h>

using namespace gputrain;

namespace {

std::int64_t flops(const std::string& name, const std::vector<std::pair<std::string, std::string>>& keys,
                   const std::vector<std::int64_t>& shape, std::int64_t classes) {
  const models::Model model =
      bound(models::all_models(), name, keys).build({shape, classes, nn::init_on_cpu(1)});
  std::vector<std::int64_t> batch{1};
  batch.insert(batch.end(), shape.begin(), shape.end());
  return run::forward_flops(*model, at::ones(batch));
}

}  // namespace

TEST_CASE("flops: a multiply-add of a matrix product counts as two", "[run]") {
  // 1x2x3 = 6 inputs, hidden layers of 256 and 128, 10 classes.
  CHECK(flops("mlp", {}, {1, 2, 3}, 10) == 2 * (6 * 256 + 256 * 128 + 128 * 10));
}

TEST_CASE("flops: they do not depend on the precision", "[run]") {
  for (const nn::Precision& precision : {nn::Precision{}, nn::Precision{at::kBFloat16, std::nullopt},
                                         nn::Precision{std::nullopt, at::kBFloat16}}) {
    const models::Model model =
        bound(models::all_models(), "convnet").build({{1, 8, 8}, 10, nn::init_on_cpu(1)});
    model->to(at::kCPU, true, precision.weights.value_or(at::kFloat));
    const std::int64_t plain = flops("convnet", {}, {1, 8, 8}, 10);
    CHECK(run::forward_flops(*model, at::ones({1, 1, 8, 8}), precision) == plain);
  }
}

TEST_CASE("flops: a ResNet-50 at 224 px takes 4.09 billion multiply-adds", "[run]") {
  // He et al. 2016, table 1, says 3.8e9; with torchvision's stride in the 3x3 convolution it is 4.09e9:
  // fvcore counts 4,089,184,256 multiply-adds in its convolutions and its last layer.
  CHECK(flops("resnet50", {}, {3, 224, 224}, 1000) == 2 * 4'089'184'256);
}
