// Expected bytes are counted by hand: rows times columns times the size of a number.
#include "profile/take.h"

#include "device/counting_allocator.h"
#include "device/memory.h"
#include "nn/layers.h"
#include "optim/freeze.h"
#include "profile/layers.h"
#include "support/catch.h"
#include "support/settings.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <new>
#include <vector>

namespace gputrain::profile {
namespace {

// What a leak looks like: memory that nobody asks for again.
std::vector<at::Tensor>& hoard() {
  static std::vector<at::Tensor> tensors;
  return tensors;
}

class Leaking : public nn::Module {
 public:
  explicit Leaking(std::int64_t bytes) : bytes_(bytes) {}

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    if (bytes_ > 0) hoard().push_back(at::empty({bytes_}, at::kByte));
    return input.view(input.sizes());
  }

 private:
  std::int64_t bytes_;
};

// Lacks memory when it is asked to.
class Failing : public nn::Module {
 public:
  bool fails = false;

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    if (fails) throw std::bad_alloc();
    return input.view(input.sizes());
  }
};

// 3 inputs, 5 hidden units, 2 outputs.
class Net : public nn::Module {
 public:
  explicit Net(std::int64_t leaked_bytes, int calls = 1) : calls_(calls) {
    const nn::Init init = nn::init_on_cpu(1);
    first_ = &add("first", std::make_unique<nn::Linear>(3, 5, init));
    middle_ = &add("middle", std::make_unique<Leaking>(leaked_bytes));
    failing = &add("failing", std::make_unique<Failing>());
    second_ = &add("second", std::make_unique<nn::Linear>(5, 2, init));
  }

  Failing* failing;

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = at::relu((*first_)(input));
    for (int i = 0; i < calls_; ++i) x = (*middle_)(x);
    return (*second_)((*failing)(x));
  }

 private:
  int calls_;
  nn::Module* first_;
  nn::Module* middle_;
  nn::Module* second_;
};

class Store : public data::Split {
 public:
  std::int64_t size() const override { return 4; }
  std::int64_t targets(const std::vector<std::int64_t>& ids) const override {
    return static_cast<std::int64_t>(ids.size());
  }
  nn::Batch batch(const std::vector<std::int64_t>& ids) override {
    const auto count = static_cast<std::int64_t>(ids.size());
    return {at::zeros({count, 3}), at::zeros({count}, at::kLong), ids, count};
  }
  std::vector<at::Tensor> held() const override { return {images_}; }

 private:
  at::Tensor images_ = at::zeros({4, 7}, at::kByte);
};

struct Bench {
  explicit Bench(std::int64_t leaked_bytes = 0, const std::vector<std::string>& frozen = {},
                 at::ScalarType weights_type = at::kFloat, int calls = 1)
      : model((device::install_counting_allocator(), leaked_bytes), calls), type(weights_type) {
    flat_buffers = model.to(at::kCPU, false, type);
    if (!frozen.empty()) optim::freeze(model.named_parameters(), frozen);
    optimizer = bound(optim::all_optimizers(), "adamw").build({optim::trained(model.named_parameters()), 1});
    data.train = std::make_unique<Store>();
  }

  Owners owners() const { return {model, *optimizer, ema.get(), data}; }

  LedgerTaker taker() {
    return LedgerTaker(at::kCPU, owners(), meter, [this] {
      Held held;
      for (const auto& [name, value] : model.named_parameters()) {
        held.emplace_back(Class::kGradients, value.grad());
      }
      return held;
    });
  }

  void pass(LedgerTaker& taker, bool is_last) {
    nn::Batch batch = data.train->batch({0, 1, 2, 3});
    taker.around(batch, is_last, [&] {
      const at::Tensor output = model(batch.input.to(type));
      const at::Tensor loss = output.square().sum();
      taker.end_forward(output, loss);
      loss.backward();
    });
  }

  void watch(LedgerTaker& taker) {
    const nn::Batch batch = data.train->batch({0, 1, 2, 3});
    taker.watch(batch, [&] {
      const at::Tensor output = model(batch.input);
      taker.end_forward(output, output);
      output.sum().backward();
    });
  }

  RunLedger take(int passes = 1) {
    LedgerTaker made = taker();
    made.start();
    pass(made, false);  // LibTorch's own scalars are made
    for (auto& [name, value] : model.named_parameters()) at::Tensor(value).mutable_grad().reset();
    made.begin(3, passes, /*warm=*/true);
    for (int i = 1; i <= passes; ++i) pass(made, i == passes);
    return made.end();
  }

  Net model;
  at::ScalarType type;
  at::Tensor flat_buffers;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Ema> ema;
  data::DataSet data;
  device::MemoryMeter meter{at::kCPU};
};

constexpr std::int64_t kWeights = (3 * 5 + 5 + 5 * 2 + 2) * 4;

}  // namespace

TEST_CASE("taking a ledger: every class by its own count", "[profile]") {
  Bench bench;
  const RunLedger ledger = bench.take();
  CHECK(ledger.device == "cpu");
  CHECK(ledger.window == 3);
  CHECK(ledger.micro_batches == 1);
  CHECK(ledger.start[Class::kWeights] == kWeights);
  CHECK(ledger.start[Class::kOptimizerStates] == 2 * kWeights);
  CHECK(ledger.start[Class::kDataSet] == 4 * 7);
  CHECK(ledger.start[Class::kInput] == 0);
  CHECK(ledger.start.layers.empty());

  const Ledger& peak = ledger.peak;
  CHECK(peak[Class::kWeights] == kWeights);
  CHECK(peak[Class::kGradients] == 0);  // the backward pass of the first micro-batch makes them
  CHECK(peak[Class::kMasters] == 0);
  CHECK(peak[Class::kOptimizerStates] == 2 * kWeights);
  CHECK(peak[Class::kInput] == 4 * 3 * 4 + 4 * 8);
  // ReLU's result, which `second` keeps too, and the output, which the loss squares; `first` keeps the input.
  CHECK(text(peak.layers) == "the model 80, the objective 32");
  CHECK(peak[Class::kActivations] == 4 * 5 * 4 + 4 * 2 * 4);
  CHECK(peak[Class::kOutputs] == 4);  // the loss
  CHECK(*ledger.allocated_peak >= *peak.memory.allocated);
}

TEST_CASE("taking a ledger: gradients of earlier micro-batches count, frozen weights have none",
          "[profile]") {
  CHECK(Bench().take(3).peak[Class::kGradients] == kWeights);
  Bench frozen(0, {"first.*"});
  const RunLedger ledger = frozen.take(2);
  CHECK(ledger.peak[Class::kWeights] == kWeights);
  CHECK(ledger.peak[Class::kGradients] == (5 * 2 + 2) * 4);
  CHECK(ledger.peak[Class::kOptimizerStates] == 2 * (5 * 2 + 2) * 4);
}

TEST_CASE("taking a ledger: 16-bit weights, their masters and averages", "[profile]") {
  Bench bench(0, {}, at::kBFloat16);
  bench.ema = std::make_unique<optim::Ema>(bench.model.named_parameters(), bench.model.named_buffers(),
                                           *bench.optimizer, optim::EmaOptions{0.9, false});
  const RunLedger ledger = bench.take();
  CHECK(ledger.peak[Class::kWeights] == kWeights / 2);
  CHECK(ledger.peak[Class::kMasters] == kWeights);
  CHECK(ledger.peak[Class::kOptimizerStates] == 2 * kWeights);
  CHECK(ledger.peak[Class::kAverages] == kWeights);
  CHECK(text(ledger.peak.layers).substr(0, 8) == "first 24");  // the input in 16 bits
}

TEST_CASE("taking a ledger: nothing is left over but what the test itself holds", "[profile]") {
  Bench bench;
  const std::int64_t before = *unexplained(bench.take().start);
  const RunLedger ledger = bench.take();
  CHECK(*unexplained(ledger.start) >= before);
  CHECK(*unexplained(ledger.peak) - *unexplained(ledger.start) >= 0);
  CHECK(*unexplained(ledger.peak) - *unexplained(ledger.start) <= 64);
  REQUIRE(ledger.growth);
  CHECK(ledger.growth->bytes == 0);
  CHECK(ledger.growth->layers.empty());
}

TEST_CASE("taking a ledger: a layer that leaks 500 MiB with each pass is named", "[profile]") {
  constexpr std::int64_t kLeak = std::int64_t{500} << 20;
  Bench bench(kLeak);
  const RunLedger ledger = bench.take();
  hoard().clear();
  CHECK(*unexplained(ledger.peak) - *unexplained(ledger.start) >= 2 * kLeak);
  REQUIRE(ledger.growth);
  CHECK(ledger.growth->bytes == kLeak);
  CHECK(text(ledger.growth->layers) == "middle 524288000");
}

TEST_CASE("taking a ledger: what a layer leaks in several calls of a pass is one sum", "[profile]") {
  constexpr std::int64_t kLeak = 1 << 20;
  Bench bench(kLeak, {}, at::kFloat, /*calls=*/3);
  const RunLedger ledger = bench.take();
  hoard().clear();
  CHECK(ledger.growth->bytes == 3 * kLeak);
  CHECK(text(ledger.growth->layers) == "middle 3145728");
}

TEST_CASE("taking a ledger: a small leak is named, too; before a warm-up none is looked for", "[profile]") {
  constexpr std::int64_t kLeak = 100 << 10;
  Bench bench(kLeak);
  CHECK(text(bench.take().growth->layers) == "middle 102400");
  LedgerTaker taker = bench.taker();
  taker.start();
  taker.begin(1, 1, /*warm=*/false);
  bench.pass(taker, true);
  CHECK(!taker.end().growth);
  hoard().clear();
}

TEST_CASE("what is live: in a pass that memory ended, up to the last layer that returned", "[profile]") {
  Bench bench;
  LedgerTaker taker = bench.taker();
  CHECK(taker.live()[Class::kWeights] == kWeights);
  CHECK(taker.live()[Class::kActivations] == 0);
  bench.model.failing->fails = true;
  CHECK_THROWS_AS(bench.watch(taker), std::bad_alloc);
  CHECK(taker.live()[Class::kInput] == 4 * 3 * 4 + 4 * 8);
  CHECK(text(taker.live().layers) == "the model 80");  // of ReLU, which is before it
  CHECK_THAT(describe_live(taker.live()),
             ContainsSubstring("\nkept for backward, largest layers: the model 80 B"));
  bench.model.failing->fails = false;
  bench.watch(taker);
  CHECK(taker.live()[Class::kOutputs] == 4 * 2 * 4);
  CHECK(taker.live()[Class::kGradients] == 0);
  bench.watch(taker);
  CHECK(taker.live()[Class::kGradients] == kWeights);
}

TEST_CASE("expected memory: by arithmetic what is measured later", "[profile]") {
  Bench bench(0, {"second.bias"});
  const nn::Batch sample = bench.data.train->batch({0});
  const Owners owners = bench.owners();
  const Ledger ledger = expected({owners, bench.flat_buffers, sample, 4});
  const RunLedger measured = bench.take(2);
  for (const Class kind : {Class::kWeights, Class::kGradients, Class::kOptimizerStates, Class::kDataSet,
                           Class::kInput, Class::kBuffers, Class::kAverages}) {
    CAPTURE(kClassNames[static_cast<std::size_t>(kind)]);
    CHECK(ledger[kind] == measured.peak[kind]);
  }
}

TEST_CASE("expected memory: sums of 16-bit gradients stand beside those of a pass", "[profile]") {
  const Bench bench(0, {}, at::kBFloat16);
  const nn::Batch sample = bench.data.train->batch({0});
  const Owners owners = bench.owners();
  CHECK(expected({owners, bench.flat_buffers, sample, 4, false})[Class::kGradients] == kWeights / 2);
  CHECK(expected({owners, bench.flat_buffers, sample, 4, true})[Class::kGradients] ==
        kWeights / 2 + kWeights);
}

}  // namespace gputrain::profile
