#include "base/error.h"
#include "models/model.h"
#include "models/tiny.h"
#include "support/catch.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace gputrain::models {
namespace {

std::map<std::string, std::vector<std::int64_t>> shapes(const nn::NamedTensors& tensors) {
  std::map<std::string, std::vector<std::int64_t>> all;
  for (const auto& [name, value] : tensors) all[name] = value.sizes().vec();
  return all;
}

double deviation(const Model& model, const std::string& wanted) {
  for (const auto& [name, value] : model->named_parameters()) {
    if (name == wanted) return value.std().item<double>();
  }
  return NAN;
}

}  // namespace

// Counts published with torchvision's models for 1000 classes.
TEST_CASE("resnet: as many parameters as torchvision's", "[models]") {
  const std::map<std::string, std::int64_t> counts = {{"resnet18", 11689512},
                                                      {"resnet34", 21797672},
                                                      {"resnet50", 25557032},
                                                      {"resnet101", 44549160},
                                                      {"resnet152", 60192808}};
  for (const auto& [name, count] : counts) {
    INFO(name);
    CHECK(tiny_model(name, {3, 224, 224}, 1000, 1)->parameter_count() == count);
  }
}

TEST_CASE("resnet50: names and shapes are torchvision's", "[models]") {
  const Model model = tiny_model("resnet50", {3, 224, 224}, 1000, 1);
  const auto parameters = shapes(model->named_parameters());
  const auto buffers = shapes(model->named_buffers());
  using Shape = std::vector<std::int64_t>;
  CHECK(parameters.size() == 161);
  CHECK(buffers.size() == 159);
  CHECK(parameters.at("conv1.weight") == Shape{64, 3, 7, 7});
  CHECK(parameters.at("layer1.0.conv1.weight") == Shape{64, 64, 1, 1});
  CHECK(parameters.at("layer1.0.downsample.0.weight") == Shape{256, 64, 1, 1});
  CHECK(parameters.at("layer1.0.downsample.1.bias") == Shape{256});
  CHECK(parameters.at("layer2.0.conv2.weight") == Shape{128, 128, 3, 3});
  CHECK(parameters.at("layer3.5.bn3.weight") == Shape{1024});
  CHECK(parameters.at("layer4.0.downsample.0.weight") == Shape{2048, 1024, 1, 1});
  CHECK(parameters.at("fc.weight") == Shape{1000, 2048});
  CHECK(buffers.at("layer4.2.bn2.running_var") == Shape{512});
  CHECK(buffers.at("bn1.num_batches_tracked") == Shape{});
}

// torchvision: convolutions normal with deviation sqrt(2 / (out * kernel area)); fc uniform in +-1/sqrt(in).
TEST_CASE("resnet18: weights start with torchvision's spread", "[models]") {
  const Model model = tiny_model("resnet18", {3, 64, 64}, 1000, 7);
  CHECK(deviation(model, "conv1.weight") == Approx(std::sqrt(2.0 / (64 * 49))).epsilon(0.03));
  CHECK(deviation(model, "layer4.1.conv2.weight") == Approx(std::sqrt(2.0 / (512 * 9))).epsilon(0.01));
  CHECK(deviation(model, "fc.weight") == Approx(1 / std::sqrt(512.0) / std::sqrt(3.0)).epsilon(0.01));
}

TEST_CASE("resnet: the small stem keeps the image's size", "[models]") {
  const Model model = tiny_model("resnet18", {1, 8, 8}, 3, 1, {{"stem", "small"}});
  CHECK(shapes(model->named_parameters()).at("conv1.weight") == std::vector<std::int64_t>{64, 1, 3, 3});
  CHECK((*model)(at::zeros({2, 1, 8, 8})).sizes().vec() == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("models: settings that do not fit the data are refused", "[models]") {
  CHECK_THROWS_WITH(tiny_model("mlp", {1, 4, 4}, 10, 1, {{"num_classes", "7"}}),
                    "model.num_classes is 7, the data has labels up to 9; write auto or at least 10");
  CHECK_THROWS_WITH(tiny_model("mlp", {1, 4, 4}, 10, 1, {{"in_channels", "3"}}),
                    "model.in_channels is 3, the data has 1; write auto or 1");
  CHECK_THROWS_WITH(
      tiny_model("convnet", {1, 3, 9}, 10, 1),
      "model.stages is 3, which halves images 2 times, but they are 3x9 px; expected fewer stages or "
      "images of at least 4 px");
}

}  // namespace gputrain::models
