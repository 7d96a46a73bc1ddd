#include "nn/precision.h"

#include "nn/layers.h"
#include "support/catch.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <stdexcept>

namespace gputrain::nn {
namespace {

at::ScalarType type_of_product() {
  const at::Tensor a = at::ones({2, 2});
  return at::matmul(a, a).scalar_type();
}

// A convolution and a normalisation.
std::unique_ptr<Sequential> small() {
  auto model = std::make_unique<Sequential>();
  const Init init = init_on_cpu(1);
  model->push(std::make_unique<Conv2d>(Conv2dShape{.in = 3, .out = 4, .kernel = 3, .padding = 1}, init));
  model->push(std::make_unique<BatchNorm2d>(4));
  return model;
}

}  // namespace

TEST_CASE("autocast: products run in its type inside, and in float32 before and after", "[nn]") {
  CHECK(type_of_product() == at::kFloat);
  {
    const Autocast outer(at::kCPU, at::kBFloat16);
    CHECK(type_of_product() == at::kBFloat16);
    {
      const Autocast inner(at::kCPU, at::kHalf);
      CHECK(type_of_product() == at::kHalf);
    }
    CHECK(type_of_product() == at::kBFloat16);
  }
  CHECK(type_of_product() == at::kFloat);
}

TEST_CASE("autocast: it ends with an exception, too", "[nn]") {
  try {
    const Autocast autocast(at::kCPU, at::kBFloat16);
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
  }
  CHECK(type_of_product() == at::kFloat);
}

TEST_CASE("autocast: a weight that has changed is cast anew in the next scope", "[nn]") {
  at::Tensor weight = at::ones({2, 2}).set_requires_grad(true);
  const auto product = [&] {
    const Autocast autocast(at::kCPU, at::kBFloat16);
    return at::matmul(at::ones({1, 2}), weight)[0][0].item<double>();
  };
  CHECK(product() == 2);
  weight.detach().fill_(3);
  CHECK(product() == 6);
}

TEST_CASE("precision: 16-bit weights leave normalisation in float32, and what comes out is float32", "[nn]") {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const auto model = small();
    const at::Tensor input = at::randn({2, 3, 5, 5});
    const at::Tensor expected = forward(*model, input, {});
    const at::Tensor flat = model->to(at::kCPU, true, type);
    for (const auto& [name, value] : model->named_parameters()) {
      CAPTURE(name);
      CHECK(value.scalar_type() == (name == "0.weight" ? type : at::kFloat));
    }
    CHECK(flat.scalar_type() == at::kFloat);
    const at::Tensor output = forward(*model, input, {std::nullopt, type});
    CHECK(output.scalar_type() == at::kFloat);
    CHECK(output.sub(expected).abs().max().item<double>() < 0.05);
  }
}

TEST_CASE("modules: a watch sees the output of each, inner ones first, and only while it lives", "[nn]") {
  const auto model = small();
  std::vector<std::string> seen;
  {
    const CallWatch watch(
        [&](const Module& module, const at::Tensor&) { seen.push_back(model->name_of(module)); });
    (*model)(at::randn({2, 3, 5, 5}));
  }
  (*model)(at::randn({2, 3, 5, 5}));
  CHECK(seen == std::vector<std::string>{"0", "1", "the model"});
}

}  // namespace gputrain::nn
