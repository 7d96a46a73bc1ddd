#include "nn/saved_tensors.h"

#include "nn/layers.h"
#include "support/catch.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace gputrain::nn {
namespace {

class Doubled final : public Kept {
 public:
  explicit Doubled(const at::Tensor& tensor) : tensor_(tensor.detach().mul(2)) {}
  at::Tensor get() override { return tensor_; }

 private:
  at::Tensor tensor_;
};

std::unique_ptr<Kept> doubled(const at::Tensor& tensor) {
  return std::make_unique<Doubled>(tensor);
}

at::Tensor three() {
  return at::ones({}).mul(3).set_requires_grad(true);
}

}  // namespace

TEST_CASE("saved tensors: backward gets what the innermost scope keeps", "[nn]") {
  const at::Tensor x = three();
  {
    const SavedTensors outer(doubled);
    x.mul(x).backward();  // 2 * 3 + 2 * 3
    CHECK(x.grad().item<double>() == 12);
    x.mutable_grad().reset();
    const SavedTensors inner([](const at::Tensor& /*saved*/) { return nullptr; });
    x.mul(x).backward();
    CHECK(x.grad().item<double>() == 6);
    x.mutable_grad().reset();
  }
  x.mul(x).backward();
  CHECK(x.grad().item<double>() == 6);
}

TEST_CASE("saved tensors: a scope ends with an exception", "[nn]") {
  const at::Tensor x = three();
  CHECK_THROWS_WITH(
      [&] {
        const SavedTensors scope([](const at::Tensor& /*saved*/) -> std::unique_ptr<Kept> {
          throw std::runtime_error("by the scope");
        });
        x.mul(x);
      }(),
      "by the scope");
  x.mul(x).backward();
  CHECK(x.grad().item<double>() == 6);
}

TEST_CASE("saved tensors: one that is kept as it is and changed in place is an error", "[nn]") {
  const at::Tensor x = three();
  at::Tensor y = at::ones({3}).mul(2);
  const SavedTensors scope([](const at::Tensor& /*saved*/) { return nullptr; });
  const at::Tensor product = y.mul(x).sum();
  y.add_(1);
  CHECK_THROWS_WITH(product.backward(), ContainsSubstring("changed in place"));
}

TEST_CASE("saved tensors: nothing stays after backward", "[nn]") {
  const at::Tensor x = three();
  c10::weak_intrusive_ptr<c10::StorageImpl> storage(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(x.storage().unsafeGetStorageImpl()));
  {
    const SavedTensors scope([](const at::Tensor& /*saved*/) { return nullptr; });
    const at::Tensor y = x.exp();
    storage = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(y.storage().unsafeGetStorageImpl());
    y.backward();
  }
  CHECK(storage.expired());
}

TEST_CASE("kept watch: shows each layer what it keeps", "[nn]") {
  const Init init = init_on_cpu(1);
  Linear first(3, 5, init), second(5, 2, init);
  std::vector<std::pair<const Module*, std::vector<std::int64_t>>> kept;
  at::Tensor y;
  {
    const KeptWatch watch([&](const Module* layer, const at::Tensor& tensor) {
      if (!tensor.requires_grad()) kept.emplace_back(layer, tensor.sizes().vec());
    });
    y = second(first(at::ones({4, 3})).relu());
  }
  y.sum().backward();
  const auto has = [&](const Module* layer, const std::vector<std::int64_t>& sizes) {
    return std::find(kept.begin(), kept.end(), std::pair(layer, sizes)) != kept.end();
  };
  CHECK(has(&first, {4, 3}));   // its input, for the gradient of the weight
  CHECK(has(nullptr, {4, 5}));  // relu's result
  CHECK(has(&second, {4, 5}));
  first(at::ones({4, 3}));  // not watched any more
}

}  // namespace gputrain::nn
