#include "nn/layers.h"

#include "base/error.h"
#include "nn/guards.h"
#include "support/catch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace gputrain::nn {
namespace {

const Init& init() {
  static const Init made = init_on_cpu(3);
  return made;
}

at::Tensor buffer(const Module& module, const std::string& wanted) {
  for (const auto& [name, value] : module.named_buffers()) {
    if (name == wanted) return value;
  }
  throw std::out_of_range(wanted);
}

}  // namespace

// Channel values 1, 2, 3, 4: mean 2.5, variance 1.25, unbiased 5/3; momentum 0.1 from mean 0 and variance 1.
TEST_CASE("batch norm: running statistics move once per training pass, and never in evaluation", "[nn]") {
  BatchNorm2d norm(1);
  const at::Tensor input = at::arange(1, 5, at::kFloat).view({2, 1, 1, 2});
  const at::Tensor output = norm(input);
  CHECK(output.view({4})[0].item<double>() == Approx(-1.5 / std::sqrt(1.25 + 1e-5)));
  CHECK(buffer(norm, "running_mean").item<double>() == Approx(0.25));
  CHECK(buffer(norm, "running_var").item<double>() == Approx(0.9 + 0.1 * 5 / 3));
  CHECK(buffer(norm, "num_batches_tracked").item<std::int64_t>() == 1);

  norm.train(false);
  norm(input);
  CHECK(buffer(norm, "running_mean").item<double>() == Approx(0.25));
  CHECK(buffer(norm, "num_batches_tracked").item<std::int64_t>() == 1);
}

TEST_CASE("kept buffers: they come back, and what cannot ends no program while an error is on its way",
          "[nn]") {
  const BatchNorm2d norm(3);
  const auto fail = [&](bool is_broken) {
    const KeptBuffers kept(norm);
    buffer(norm, "running_mean").fill_(7);
    if (is_broken) buffer(norm, "running_mean").resize_({2});
    throw std::runtime_error("first");
  };
  CHECK_THROWS_WITH(fail(false), "first");
  CHECK(buffer(norm, "running_mean").equal(at::zeros({3})));
  CHECK_THROWS_WITH(fail(true), "first");
}

TEST_CASE("modules: passes are taken out of the counters of layers that count them, and of nothing else",
          "[nn]") {
  // Positions of a sequence are integers, too, and count nothing.
  class Positions : public Module {
   public:
    Positions() { add_buffer("positions", at::arange(3)); }

   protected:
    at::Tensor forward(const at::Tensor& input) override { return input; }
  };
  auto inner = std::make_unique<Sequential>();
  inner->push(std::make_unique<BatchNorm2d>(1));
  inner->push(std::make_unique<Positions>());
  Sequential model;
  model.push(std::make_unique<BatchNorm2d>(1));
  model.push(std::move(inner));
  const at::Tensor input = at::arange(1, 5, at::kFloat).view({2, 1, 1, 2});
  for (int pass = 0; pass < 5; ++pass) model(input);
  model.count_passes(-2);
  CHECK(buffer(model, "0.num_batches_tracked").item<std::int64_t>() == 3);
  CHECK(buffer(model, "1.0.num_batches_tracked").item<std::int64_t>() == 3);
  CHECK(at::equal(buffer(model, "1.1.positions"), at::arange(3)));
}

TEST_CASE("batch norm: one value per channel is refused in training, fine in evaluation", "[nn]") {
  BatchNorm2d norm(3);
  CHECK_THROWS_WITH(norm(at::ones({1, 3, 1, 1})), ContainsSubstring("one value per channel"));
  norm.train(false);
  CHECK_NOTHROW(norm(at::ones({1, 3, 1, 1})));
}

TEST_CASE("linear: input times weight transposed plus bias", "[nn]") {
  Linear layer(3, 2, init());
  auto parameters = layer.named_parameters();
  REQUIRE(parameters[0].first == "weight");
  parameters[0].second.set_data(at::arange(6, at::kFloat).view({2, 3}));
  parameters[1].second.set_data(at::full({2}, 10, at::kFloat));
  const at::Tensor output = layer(at::ones({1, 3}));
  CHECK(output[0][0].item<float>() == 13);  // 0 + 1 + 2 + 10
  CHECK(output[0][1].item<float>() == 22);  // 3 + 4 + 5 + 10
}

TEST_CASE("embedding: one row of its weights per number, and gradients that add up where one repeats",
          "[nn]") {
  Embedding layer(3, 2, init());
  auto parameters = layer.named_parameters();
  REQUIRE(parameters.size() == 1);
  REQUIRE(parameters[0].first == "weight");
  parameters[0].second.set_data(at::arange(6, at::kFloat).view({3, 2}));
  const at::Tensor output = layer(at::tensor({2, 0, 2, 2}, at::kLong).view({2, 2}));
  CHECK(at::equal(output.view({8}), at::tensor({4.0F, 5.0F, 0.0F, 1.0F, 4.0F, 5.0F, 4.0F, 5.0F})));
  output.sum().backward();
  CHECK(
      at::equal(parameters[0].second.grad(), at::tensor({1.0F, 1.0F, 0.0F, 0.0F, 3.0F, 3.0F}).view({3, 2})));
}

// 20,000 values: their mean is off by 0.007 and their deviation by 0.005, one time in three.
TEST_CASE("embedding: it begins with normal values of deviation 1", "[nn]") {
  const at::Tensor weight = Embedding(200, 100, init()).named_parameters()[0].second.detach();
  CHECK(std::abs(weight.mean().item<double>()) < 0.03);
  CHECK(weight.std().item<double>() == Approx(1).margin(0.02));
}

TEST_CASE("residual unit: relu(norm(conv(x)) + shortcut)", "[nn]") {
  Conv2d conv({.in = 2, .out = 3, .kernel = 1}, init());
  BatchNorm2d norm(3);
  norm.train(false);
  const at::Tensor x = at::randn({2, 2, 4, 5});
  const at::Tensor shortcut = at::randn({2, 3, 4, 5});
  const at::Tensor expected = norm(conv(x)).add(shortcut).clamp_min(0);
  CHECK(at::equal(conv_norm_add_relu(conv, norm, x, shortcut), expected));
}

TEST_CASE("module: moving keeps values and handles, orders weights channels-last, and gathers the buffers",
          "[nn]") {
  Sequential block;
  block.push(std::make_unique<Conv2d>(Conv2dShape{.in = 3, .out = 5, .kernel = 3}, init()));
  block.push(std::make_unique<BatchNorm2d>(5));
  const at::Tensor weight = block.named_parameters()[0].second;
  const at::Tensor before = weight.detach().clone();

  const at::Tensor flat = block.to(at::kCPU, /*channels_last=*/true);

  CHECK(at::equal(weight, before));
  CHECK(weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(block.named_buffers()[2].first == "1.num_batches_tracked");
  block(at::randn({2, 3, 8, 8}));
  const at::Tensor mean = buffer(block, "1.running_mean");
  CHECK(at::equal(flat.narrow(0, 0, 5), mean));
  CHECK(at::equal(flat.narrow(0, 64, 5), buffer(block, "1.running_var")));
  CHECK(mean.abs().sum().item<float>() > 0);
}

}  // namespace gputrain::nn
