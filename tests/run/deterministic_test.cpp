#include "device/device.h"
#include "nn/module.h"
#include "run/assemble.h"
#include "support/catch.h"
#include "support/settings.h"
#include "train/trace.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

namespace gputrain::run {
namespace {

// Four samples of two values, of two classes.
class Samples : public data::Split {
 public:
  std::int64_t size() const override { return 4; }
  std::int64_t targets(const std::vector<std::int64_t>& ids) const override {
    return static_cast<std::int64_t>(ids.size());
  }
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    const auto count = static_cast<std::int64_t>(ids.size());
    return {at::zeros({count, 2, 1, 1}).add(1), at::zeros({count}, at::kLong), ids, count};
  }
};

// A linear classifier, behind an operator that has no deterministic form when asked for.
class Linear : public nn::Module {
 public:
  explicit Linear(bool refused)
      : refused_(refused),
        weight_(add_parameter("weight", at::zeros({2, 2}))),
        passes_(add_buffer("passes", at::zeros({}, at::kLong))) {}

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    passes_.add_(1);
    const at::Tensor weight = refused_ ? weight_.put(at::zeros({1}, at::kLong), at::zeros({1})) : weight_;
    return input.flatten(1).matmul(weight);
  }

 private:
  bool refused_;
  at::Tensor weight_;
  at::Tensor passes_;
};

Assembly assembly(bool refused) {
  Assembly made;
  made.options.micro_batch_size = 2;
  made.data.train = std::make_unique<Samples>();
  made.model = std::make_unique<Linear>(refused);
  made.objective = bound(objectives::all_objectives(), "cross_entropy").build({2});
  return made;
}

}  // namespace

TEST_CASE("deterministic: an operator that cannot be is found by a trial that leaves the model as it was",
          "[run]") {
  device::set_deterministic(true);
  for (const bool refused : {false, true}) {
    const Assembly made = assembly(refused);
    const std::uint64_t before = train::hash_tensors(made.model->named_buffers());
    if (refused) {
      CHECK_THROWS_WITH(
          check_deterministic(made),
          "deterministic is true, and LibTorch has no deterministic form of put_ here; expected "
          "false, or a recipe that does without it");
    } else {
      CHECK_NOTHROW(check_deterministic(made));
    }
    CHECK(train::hash_tensors(made.model->named_buffers()) == before);
    CHECK_FALSE(made.model->named_parameters()[0].second.grad().defined());
  }
  device::set_deterministic(false);
}

}  // namespace gputrain::run
