#include "nn/recompute.h"

#include "base/error.h"
#include "device/device.h"
#include "device/generators.h"
#include "nn/layers.h"
#include "nn/precision.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

namespace gputrain::nn {
namespace {

using Body = std::function<at::Tensor(const at::Tensor&)>;

// A module that is one function, and counts its calls.
class Call : public Module {
 public:
  explicit Call(Body body) : body_(std::move(body)) {}
  int count = 0;

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    ++count;
    return body_(input);
  }

 private:
  Body body_;
};

// Convolutions that are normalised, activated, and dropped out, with a shortcut: all that recomputation has
// to take care of.
class Net : public Module {
 public:
  explicit Net(std::int64_t blocks = 3) {
    const Init init = init_on_cpu(7);
    stem_ = &add("stem",
                 std::make_unique<Conv2d>(Conv2dShape{.in = 2, .out = 4, .kernel = 3, .padding = 1}, init));
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::string number = std::to_string(i);
      const Conv2dShape shape{.in = 4, .out = 4, .kernel = 3, .padding = 1};
      Conv2d& first = add("first" + number, std::make_unique<Conv2d>(shape, init));
      BatchNorm2d& norm1 = add("norm1_" + number, std::make_unique<BatchNorm2d>(4));
      Conv2d& second = add("second" + number, std::make_unique<Conv2d>(shape, init));
      BatchNorm2d& norm2 = add("norm2_" + number, std::make_unique<BatchNorm2d>(4));
      units_.add("block" + number, [&, this](const at::Tensor& x) {
        const at::Tensor hidden = at::dropout(conv_norm_relu(first, norm1, x), 0.5, training());
        return conv_norm_add_relu(second, norm2, hidden, x);
      });
    }
    head_ = &add("head", std::make_unique<Linear>(4, 3, init));
  }

  Blocks* blocks() override { return &units_; }

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    return (*head_)(global_average_pool(units_((*stem_)(input))));
  }

 private:
  Conv2d* stem_;
  Blocks units_;
  Linear* head_;
};

struct Trained {
  at::Tensor output;
  NamedTensors gradients, buffers;
  std::vector<std::uint8_t> generators;
};

Trained train_once(Module& net, const at::Tensor& input, const Precision& precision = {}) {
  device::seed_generators(input.device(), 3, 0);
  Trained trained;
  trained.output = forward(net, input, precision);
  trained.output.square().sum().backward();
  for (const auto& [name, parameter] : net.named_parameters()) {
    trained.gradients.emplace_back(name, parameter.grad());
    parameter.mutable_grad().reset();
  }
  for (const auto& [name, buffer] : net.named_buffers()) trained.buffers.emplace_back(name, buffer.clone());
  trained.generators = device::generator_state(input.device());
  return trained;
}

void check_equal(const NamedTensors& a, const NamedTensors& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].first);
    REQUIRE(a[i].second.defined());
    REQUIRE(b[i].second.defined());
    CHECK(a[i].second.equal(b[i].second));
  }
}

at::Tensor images() {
  return at::randn({3, 2, 6, 6}, init_on_cpu(5).generator);
}

// Elements that operators keep for backward, each tensor once.
std::int64_t kept_elements(Module& net) {
  std::map<const void*, std::int64_t> kept;
  std::vector<at::Tensor> alive;
  const KeptWatch watch([&](const Module* /*layer*/, const at::Tensor& tensor) {
    alive.push_back(tensor);
    kept[tensor.storage().unsafeGetStorageImpl()] = tensor.numel();
  });
  const at::Tensor output = net(images());
  std::int64_t sum = 0;
  for (const auto& [storage, count] : kept) sum += count;
  return sum;
}

}  // namespace

TEST_CASE("recompute: gradients, statistics and generators are those of a model that keeps everything",
          "[nn]") {
  const auto how = GENERATE(Recompute::kFull, Recompute::kSelective);
  const std::int64_t every = GENERATE(1, 2, 3);
  const bool mixed = GENERATE(false, true);
  const Precision precision{mixed ? std::optional(at::kBFloat16) : std::nullopt, {}};
  Net plain, again;
  again.blocks()->recompute(again, how, every);
  for (int step = 0; step < 2; ++step) {
    const Trained a = train_once(plain, images(), precision);
    const Trained b = train_once(again, images(), precision);
    CHECK(a.output.equal(b.output));
    check_equal(a.gradients, b.gradients);
    check_equal(a.buffers, b.buffers);
    CHECK(a.generators == b.generators);
  }
}

TEST_CASE("recompute: a module by itself, one inside the other, and a model in a model", "[nn]") {
  Net plain, again;
  for (auto& [name, module] : again.named_modules()) {
    if (name == "first1" || name == "norm1_1" || name == "head") module->recompute(name, Recompute::kFull);
  }
  again.blocks()->recompute(again, GENERATE(Recompute::kFull, Recompute::kSelective), 2);
  again.recompute("the model", GENERATE(Recompute::kFull, Recompute::kSelective));
  const Trained a = train_once(plain, images());
  const Trained b = train_once(again, images());
  CHECK(a.output.equal(b.output));
  check_equal(a.gradients, b.gradients);
  check_equal(a.buffers, b.buffers);
  CHECK(a.generators == b.generators);
}

TEST_CASE("recompute: running statistics move once", "[nn]") {
  BatchNorm2d norm(1);
  norm.recompute("norm", Recompute::kFull);
  Call after([&](const at::Tensor& x) { return norm(x).exp().square(); });
  after.recompute("after", Recompute::kFull);
  const at::Tensor input = at::arange(9, 12, at::kFloat).view({3, 1, 1, 1}).set_requires_grad(true);
  after(input).sum().backward();
  const NamedTensors buffers = norm.named_buffers();
  CHECK(buffers[0].second.item<float>() == 1);         // 0.9 * 0 + 0.1 * 10
  CHECK(buffers[1].second.item<float>() == 1);         // 0.9 * 1 + 0.1 * 1
  CHECK(buffers[2].second.item<std::int64_t>() == 1);  // passes
}

TEST_CASE("recompute: less is kept, the less the longer the regions", "[nn]") {
  Net net;
  const std::int64_t all = kept_elements(net);
  net.blocks()->recompute(net, Recompute::kSelective, 1);
  const std::int64_t selective = kept_elements(net);
  net.blocks()->recompute(net, Recompute::kFull, 1);
  const std::int64_t full = kept_elements(net);
  net.blocks()->recompute(net, Recompute::kFull, 3);
  const std::int64_t longest = kept_elements(net);
  CHECK(selective < all);
  CHECK(full < selective);
  CHECK(longest < full);
}

TEST_CASE("recompute: a second pass stops when it has what is needed", "[nn]") {
  Call first([](const at::Tensor& x) { return x.sigmoid().mul(x); });
  Call last([](const at::Tensor& x) { return x.sigmoid(); });
  Call net([&](const at::Tensor& x) { return last(first(x).square()); });
  net.recompute("net", Recompute::kFull);
  net(at::ones({2, 3}).set_requires_grad(true)).sum().backward();
  CHECK(first.count == 2);
  CHECK(last.count == 1);  // what it keeps is its result, the region's output
}

TEST_CASE("recompute: selective calls what is dear once, and keeps no result that nobody asks for", "[nn]") {
  class Dear : public Call {
   public:
    using Call::Call;

   protected:
    bool is_dear() const override { return true; }
  };
  const auto how = GENERATE(Recompute::kFull, Recompute::kSelective);
  Dear dear([](const at::Tensor& x) { return x.mul(2); });
  Dear last([](const at::Tensor& x) { return x.mul(3); });
  Call net([&](const at::Tensor& x) { return last(dear(x.exp()).sin().cos()).sum(); });
  net.recompute("net", how);
  std::size_t kept = 0;
  at::Tensor y;
  {
    const KeptWatch watch([&](const Module* /*layer*/, const at::Tensor& /*tensor*/) { ++kept; });
    y = net(at::ones({5}).set_requires_grad(true));
  }
  CHECK(kept == (how == Recompute::kFull ? 1 : 2));  // the input, and what sin needs
  y.backward();
  CHECK(dear.count == (how == Recompute::kFull ? 2 : 1));
  CHECK(last.count == 1);
}

TEST_CASE("recompute: an inner region that uses its input twice is computed again once", "[nn]") {
  Call inner([](const at::Tensor& x) { return x.exp().mul(x.sin()).square(); });
  Call outer([&](const at::Tensor& x) { return inner(x.cos()).exp().square(); });
  inner.recompute("inner", Recompute::kFull);
  outer.recompute("outer", Recompute::kFull);
  const at::Tensor x = at::ones({3}).set_requires_grad(true);
  outer(x).sum().backward();
  CHECK(outer.count == 2);
  CHECK(inner.count == 3);  // once more for the outer one, and once for what it does not keep itself
}

TEST_CASE("recompute: an exception inside of a region leaves nothing behind", "[nn]") {
  Linear layer(64, 64, init_on_cpu(1));
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> hidden;
  Call net([&](const at::Tensor& x) -> at::Tensor {
    const at::Tensor y = layer(x).sin();
    layer(y);
    hidden = y.storage().getWeakStorageImpl();
    throw std::runtime_error("by the layer");
  });
  net.recompute("net", Recompute::kSelective);
  CHECK_THROWS_WITH(net(at::ones({2, 64}).set_requires_grad(true)), "by the layer");
  CHECK(hidden->expired());
  layer(at::ones({2, 64})).sum().backward();  // in no region any more
}

TEST_CASE("recompute: of a group that is not called, each child", "[nn]") {
  Group group;
  const Init init = init_on_cpu(1);
  Module& first = group.push(std::make_unique<Linear>(4, 4, init));
  Module& second =
      group.push(std::make_unique<Call>([](const at::Tensor& x) { return x.exp().sin().cos(); }));
  Call net([&](const at::Tensor& x) { return second(first(x)); });
  const auto kept = [&] {
    std::size_t count = 0;
    const KeptWatch watch([&](const Module* /*layer*/, const at::Tensor& /*tensor*/) { ++count; });
    net(at::ones({2, 4}));
    return count;
  };
  const std::size_t before = kept();
  group.recompute("layers", Recompute::kFull);
  CHECK(kept() < before);
}

TEST_CASE("recompute: where no input needs a gradient, weights get theirs", "[nn]") {
  Linear layer(3, 2, init_on_cpu(1));
  layer.recompute("layer", Recompute::kFull);
  Call net([&](const at::Tensor& x) { return layer(x).square(); });
  net.recompute("net", Recompute::kFull);
  net(at::ones({2, 3})).sum().backward();
  for (const auto& [name, parameter] : layer.named_parameters()) CHECK(parameter.grad().defined());
}

TEST_CASE("recompute: without gradients each layer runs once", "[nn]") {
  Call net([](const at::Tensor& x) { return x.exp().square(); });
  net.recompute("net", Recompute::kFull);
  const c10::AutoGradMode no_grad(false);
  CHECK_FALSE(net(at::ones({2})).requires_grad());
  CHECK(net.count == 1);
}

TEST_CASE("recompute: the second pass is in the mode of the first", "[nn]") {
  Call net([](const at::Tensor& /*x*/) { return at::Tensor(); });
  std::vector<bool> modes;
  Call inner([&](const at::Tensor& x) {
    modes.push_back(net.training());
    return x.exp().square();
  });
  Region region("net", net, Recompute::kFull);
  const at::Tensor y =
      region([&](const at::Tensor& x) { return inner(x); }, at::ones({2}).set_requires_grad(true));
  net.train(false);
  y.sum().backward();
  CHECK(modes == std::vector<bool>{true, true});
  CHECK_FALSE(net.training());
}

TEST_CASE("recompute: several outputs, one of them of whole numbers", "[nn]") {
  Net owner;
  const auto gradient_of = [&](bool recomputed) {
    const at::Tensor x = at::arange(6, at::kFloat).view({2, 3}).set_requires_grad(true);
    const Region::Body body = [](const Region::Tensors& inputs) {
      const at::Tensor hidden = inputs[0].exp().mul(inputs[1]);
      return Region::Tensors{hidden.square(), hidden.gt(3), hidden.sin()};
    };
    Region region("pair", owner, Recompute::kFull);
    const Region::Tensors inputs{x.mul(0.1), at::full({2, 3}, 2)};
    const Region::Tensors outputs = recomputed ? region(body, inputs) : body(inputs);
    CHECK_FALSE(outputs[1].requires_grad());
    CHECK(outputs[1].scalar_type() == at::kBool);
    outputs[0].mul(outputs[1]).add(outputs[2]).sum().backward();
    return x.grad();
  };
  CHECK(gradient_of(true).equal(gradient_of(false)));
}

TEST_CASE("recompute: a layer that changes its input in place is refused by name", "[nn]") {
  Call net([](const at::Tensor& x) {
    at::Tensor changed = x;
    return at::relu_(changed).exp();
  });
  net.recompute("layer1.0", Recompute::kFull);
  const at::Tensor x = at::ones({2}).set_requires_grad(true);
  CHECK_THROWS_WITH(net(x.mul(1)), ContainsSubstring("layer1.0 changes its input in place"));
}

TEST_CASE("recompute: an input that is changed after the region is an error of the backward pass", "[nn]") {
  Call net([](const at::Tensor& x) { return x.exp().square(); });
  net.recompute("net", Recompute::kFull);
  const at::Tensor x = at::ones({2}).set_requires_grad(true);
  at::Tensor hidden = x.mul(1);
  const at::Tensor y = net(hidden);
  hidden.add_(1);
  CHECK_THROWS_WITH(y.sum().backward(), ContainsSubstring("changed in place"));
}

TEST_CASE("recompute: a region that does not compute the same each time is an error", "[nn]") {
  int calls = 0;
  Call net([&](const at::Tensor& x) { return ++calls == 1 ? x.exp().square() : x.sum().exp().square(); });
  net.recompute("fickle", Recompute::kFull);
  const at::Tensor y = net(at::ones({2}).set_requires_grad(true));
  CHECK_THROWS_WITH(y.sum().backward(), ContainsSubstring("fickle computed again gives"));
}

TEST_CASE("recompute: nothing is kept after backward, nor by a graph that is dropped", "[nn]") {
  const bool backward = GENERATE(true, false);
  Net net;
  net.blocks()->recompute(net, GENERATE(Recompute::kFull, Recompute::kSelective), 2);
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> kept;
  {
    const KeptWatch watch([&](const Module* /*layer*/, const at::Tensor& tensor) {
      if (!tensor.requires_grad()) kept.push_back(tensor.storage().getWeakStorageImpl());
    });
    const at::Tensor y = net(images());
    if (backward) y.sum().backward();
  }
  std::vector<const c10::StorageImpl*> own;
  for (const auto& [name, tensor] : net.named_parameters())
    own.push_back(tensor.storage().unsafeGetStorageImpl());
  for (const auto& [name, tensor] : net.named_buffers())
    own.push_back(tensor.storage().unsafeGetStorageImpl());
  CHECK(kept.size() > 5);
  for (auto& one : kept) {
    const auto storage = one.lock();
    CHECK((!storage || std::find(own.begin(), own.end(), storage.get()) != own.end()));
  }
}

TEST_CASE("recompute on the GPU: bits where it is deterministic, else values to rounding", "[nn][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const at::Device gpu(at::kCUDA, 0);
  device::set_current(gpu);
  const bool deterministic = GENERATE(true, false);
  const auto how = GENERATE(Recompute::kFull, Recompute::kSelective);
  const bool mixed = GENERATE(false, true);
  const Precision precision{mixed ? std::optional(at::kHalf) : std::nullopt, {}};
  device::set_deterministic(deterministic);
  Net plain, again;
  plain.to(gpu, /*channels_last=*/true);
  again.to(gpu, /*channels_last=*/true);
  again.blocks()->recompute(again, how, 2);
  const at::Tensor input = images().to(gpu).contiguous(at::MemoryFormat::ChannelsLast);
  const Trained a = train_once(plain, input, precision);
  const Trained b = train_once(again, input, precision);
  device::set_deterministic(false);
  CHECK(a.output.equal(b.output));
  CHECK(a.generators == b.generators);
  if (deterministic) {
    check_equal(a.gradients, b.gradients);
    check_equal(a.buffers, b.buffers);
  }
  const double tolerance = mixed ? 2e-2 : 1e-5;
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    INFO(a.gradients[i].first);
    const at::Tensor& expected = a.gradients[i].second;
    const double scale = expected.abs().max().item<double>() + 1e-6;
    CHECK(expected.sub(b.gradients[i].second).abs().max().item<double>() <= tolerance * scale);
  }
}

}  // namespace gputrain::nn
