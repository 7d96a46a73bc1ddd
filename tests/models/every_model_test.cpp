#include "models/model.h"
#include "models/tiny.h"
#include "support/catch.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <cmath>

// Every model is tested by existing.
namespace gputrain::models {
namespace {

at::Tensor images(std::int64_t batch) {
  return at::randn({batch, 3, 16, 17}, nn::init_on_cpu(2).generator);
}

}  // namespace

TEST_CASE("every model: defaults bind, and the output is one logit per class", "[models]") {
  for (const ModelComponent& component : all_models()) {
    INFO(component.name);
    const Model model = tiny_model(component.name, {3, 16, 17}, 5, 1);
    CHECK((*model)(images(2)).sizes().vec() == std::vector<std::int64_t>{2, 5});
  }
}

TEST_CASE("every model: gradients reach every parameter", "[models]") {
  for (const ModelComponent& component : all_models()) {
    const Model model = tiny_model(component.name, {3, 16, 17}, 5, 1);
    (*model)(images(2)).square().sum().backward();
    for (const auto& [name, parameter] : model->named_parameters()) {
      INFO(component.name << " " << name);
      REQUIRE(parameter.grad().defined());
      CHECK(parameter.grad().abs().sum().item<float>() > 0);
    }
  }
}

TEST_CASE("every model: the same seed gives the same weights, another seed others", "[models]") {
  for (const ModelComponent& component : all_models()) {
    INFO(component.name);
    const auto first = tiny_model(component.name, {3, 16, 17}, 5, 1)->named_parameters();
    const auto same = tiny_model(component.name, {3, 16, 17}, 5, 1)->named_parameters();
    const auto other = tiny_model(component.name, {3, 16, 17}, 5, 2)->named_parameters();
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i].second, same[i].second));
    CHECK_FALSE(at::equal(first[0].second, other[0].second));
  }
}

TEST_CASE("every model: one batch can be learned by heart", "[models]") {
  for (const ModelComponent& component : all_models()) {
    if (component.name == "resnet101" || component.name == "resnet152") continue;  // resnet50, only slower
    INFO(component.name);
    const Model model = tiny_model(component.name, {3, 16, 17}, 5, 1);
    const at::Tensor input = images(6);
    const at::Tensor target = at::tensor({0, 3, 1, 4, 2, 2}, at::kLong);
    double loss = 0;
    for (int step = 0; step < 60; ++step) {
      at::Tensor mean = at::cross_entropy_loss((*model)(input), target);
      mean.backward();
      loss = mean.item<double>();
      const c10::AutoGradMode no_grad(false);
      for (auto& [name, parameter] : model->named_parameters()) {
        at::Tensor(parameter).sub_(parameter.grad(), /*alpha=*/0.05);
        parameter.mutable_grad().reset();
      }
    }
    CHECK(loss < 0.5 * std::log(5.0));
  }
}

TEST_CASE("every model: in evaluation mode a sample's logits do not depend on its neighbours", "[models]") {
  for (const ModelComponent& component : all_models()) {
    INFO(component.name);
    const Model model = tiny_model(component.name, {3, 16, 17}, 5, 1);
    model->train(false);
    const at::Tensor input = images(3);
    const at::Tensor together = (*model)(input).slice(0, 1, 2);
    const at::Tensor alone = (*model)(input.slice(0, 1, 2));
    CHECK(together.sub(alone).abs().max().item<float>() < 1e-4F * together.abs().max().item<float>());
  }
}

}  // namespace gputrain::models
