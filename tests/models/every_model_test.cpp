#include "models/model.h"
#include "models/tiny.h"
#include "nn/precision.h"
#include "nn/recompute.h"
#include "support/catch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>

// Every model is tested by existing.
namespace gputrain::models {
namespace {

bool reads_tokens(const std::string& name) {
  return name == "testing.tokens";
}

// For 5 classes, of the sample shape that it reads.
Model tiny(const std::string& name, std::uint64_t seed = 1) {
  return tiny_model(name,
                    reads_tokens(name) ? std::vector<std::int64_t>{4} : std::vector<std::int64_t>{3, 16, 17},
                    5, seed);
}

// Every one of the 5 tokens occurs from a batch of 2 on.
at::Tensor samples(const std::string& name, std::int64_t batch) {
  if (reads_tokens(name)) return at::arange(batch * 4).remainder(5).view({batch, 4});
  return at::randn({batch, 3, 16, 17}, nn::init_on_cpu(2).generator);
}

// A row of logits per target: per sample, or per position.
at::Tensor rows(const at::Tensor& logits) {
  return logits.flatten(0, -2);
}

}  // namespace

TEST_CASE("every model: defaults bind, and the output is one logit per class", "[models]") {
  for (const ModelComponent& component : all_models()) {
    INFO(component.name);
    const Model model = tiny(component.name);
    std::vector<std::int64_t> expected{2, 5};
    if (reads_tokens(component.name)) expected = {2, 4, 5};  // one row per position
    CHECK((*model)(samples(component.name, 2)).sizes().vec() == expected);
  }
}

TEST_CASE("every model: what is computed again in the backward pass changes no bit", "[models]") {
  const bool mixed = GENERATE(false, true);
  const auto how = GENERATE(nn::Recompute::kFull, nn::Recompute::kSelective);
  const std::int64_t every = GENERATE(1, 3);
  for (const ModelComponent& component : all_models()) {
    INFO(component.name << (mixed ? " in bfloat16" : ""));
    const nn::Precision precision{mixed ? std::optional(at::kBFloat16) : std::nullopt, {}};
    const at::Tensor input = samples(component.name, 2);
    const Model plain = tiny(component.name);
    const Model again = tiny(component.name);
    REQUIRE(again->blocks() != nullptr);
    again->blocks()->recompute(*again, how, every);
    for (nn::Module* model : {plain.get(), again.get()}) {
      nn::forward(*model, input, precision).square().sum().backward();
    }
    const auto check_equal = [](const nn::NamedTensors& a, const nn::NamedTensors& b, bool gradients) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        INFO(a[i].first);
        CHECK((gradients ? a[i].second.grad().equal(b[i].second.grad()) : a[i].second.equal(b[i].second)));
      }
    };
    check_equal(plain->named_parameters(), again->named_parameters(), true);
    check_equal(plain->named_buffers(), again->named_buffers(), false);
  }
}

TEST_CASE("every model: gradients reach every parameter", "[models]") {
  for (const ModelComponent& component : all_models()) {
    const Model model = tiny(component.name);
    (*model)(samples(component.name, 2)).square().sum().backward();
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
    const auto first = tiny(component.name)->named_parameters();
    const auto same = tiny(component.name)->named_parameters();
    const auto other = tiny(component.name, 2)->named_parameters();
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i].second, same[i].second));
    CHECK_FALSE(at::equal(first[0].second, other[0].second));
  }
}

TEST_CASE("every model: one batch can be learned by heart", "[models]") {
  for (const ModelComponent& component : all_models()) {
    if (component.name == "resnet101" || component.name == "resnet152") continue;  // resnet50, only slower
    INFO(component.name);
    const Model model = tiny(component.name);
    const at::Tensor input = samples(component.name, 6);
    // Of tokens, one that the token itself decides: there is nothing else to learn it from.
    const at::Tensor target = reads_tokens(component.name) ? input.add(1).remainder(5).flatten()
                                                           : at::tensor({0, 3, 1, 4, 2, 2}, at::kLong);
    double loss = 0;
    for (int step = 0; step < 60; ++step) {
      at::Tensor mean = at::cross_entropy_loss(rows((*model)(input)), target);
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
    const Model model = tiny(component.name);
    model->train(false);
    const at::Tensor input = samples(component.name, 3);
    const at::Tensor together = (*model)(input).slice(0, 1, 2);
    const at::Tensor alone = (*model)(input.slice(0, 1, 2));
    CHECK(together.sub(alone).abs().max().item<float>() < 1e-4F * together.abs().max().item<float>());
  }
}

TEST_CASE("every model: data of the other kind is refused, naming what it reads", "[models]") {
  for (const ModelComponent& component : all_models()) {
    INFO(component.name);
    const bool tokens = reads_tokens(component.name);
    const std::vector<std::int64_t> other =
        tokens ? std::vector<std::int64_t>{3, 16, 17} : std::vector<std::int64_t>{4};
    CHECK_THROWS_WITH(
        tiny_model(component.name, other, 5, 1),
        ContainsSubstring(tokens ? "model.name reads tokens, the data has images"
                                 : "model.name reads images, the data has sequences of tokens"));
  }
}

TEST_CASE("testing.tokens: padding changes nothing at the positions before it", "[models]") {
  const Model model = tiny_model("testing.tokens", {3}, 5, 1);
  const at::Tensor tokens = at::tensor({4, 1, 3}, at::kLong).view({1, 3});
  const at::Tensor padded = at::cat({tokens, at::zeros({1, 7}, at::kLong)}, 1);
  // A product of more rows may be summed in another order.
  const at::Tensor difference = (*model)(padded).slice(1, 0, 3).sub((*model)(tokens));
  CHECK(difference.abs().max().item<float>() < 1e-6F);
}

TEST_CASE("testing.tokens: a vocabulary smaller than the data's is refused", "[models]") {
  CHECK_THROWS_WITH(tiny_model("testing.tokens", {3}, 5, 1, {{"vocab_size", "4"}}),
                    "model.vocab_size is 4, the data has tokens up to 4; write auto or at least 5");
  CHECK((*tiny_model("testing.tokens", {3}, 5, 1, {{"vocab_size", "9"}}))(at::zeros({1, 3}, at::kLong))
            .size(2) == 9);
}

}  // namespace gputrain::models
