#include "profile/ledger.h"

#include "device/memory.h"
#include "support/catch.h"
#include "train/support.h"

#include <ATen/ops/empty.h>

namespace gputrain::train {
namespace {

std::vector<at::Tensor>& hoard() {
  static std::vector<at::Tensor> tensors;
  return tensors;
}

constexpr std::int64_t kLeak = std::int64_t{500} << 20;

// Keeps something of each call for ever; the pages of it are never touched.
class Leaking : public nn::Module {
 protected:
  at::Tensor forward(const at::Tensor& input) override {
    if (training()) hoard().push_back(at::empty({kLeak}, at::kByte));
    return input.mul(1);
  }
};

class LeakingModel : public nn::Module {
 public:
  explicit LeakingModel(models::Model body) {
    leak_ = &add("leak", std::make_unique<Leaking>());
    body_ = &add("body", std::move(body));
  }

 protected:
  at::Tensor forward(const at::Tensor& input) override { return (*body_)((*leak_)(input)); }

 private:
  nn::Module* leak_;
  nn::Module* body_;
};

class LedgerRecorder : public Recorder {
 public:
  void ledger(const profile::RunLedger& taken) override { ledgers.push_back(taken); }
  std::vector<profile::RunLedger> ledgers;
};

LedgerRecorder trained(Bench& bench) {
  bench.options.memory_ledger = true;
  LedgerRecorder recorder;
  const StopFlag stop;
  train(bench.options,
        {*bench.model, bench.flat_buffers, bench.data, *bench.objective, *bench.optimizer, bench.schedule},
        recorder, stop, nullptr);
  return recorder;
}

}  // namespace

TEST_CASE("trainer: the ledger is taken once, in the third window, and nothing is left over", "[train]") {
  device::install_counting_allocator();
  Bench bench(24);
  bench.options.micro_batch_size = 2;
  bench.options.gradient_accumulation_steps = 2;
  bench.options.max_steps = 5;
  const LedgerRecorder recorder = trained(bench);
  REQUIRE(recorder.ledgers.size() == 1);
  const profile::RunLedger& ledger = recorder.ledgers.front();
  CHECK(ledger.window == 3);
  CHECK(ledger.micro_batches == 2);
  CHECK(*profile::unexplained(ledger.peak) >= 0);
  CHECK(*profile::unexplained(ledger.peak) < 1024);
  CHECK(ledger.peak[profile::Class::kGradients] == ledger.peak[profile::Class::kWeights]);
  CHECK(ledger.growth->layers.empty());
  CHECK(recorder.steps.size() == 5);
  CHECK(recorder.steps[2].memory.allocated_peak >= ledger.peak.memory.allocated);
}

TEST_CASE("trainer: a layer that leaks 500 MiB with each pass is named in the ledger", "[train]") {
  device::install_counting_allocator();
  Bench bench(12);
  bench.model = std::make_unique<LeakingModel>(std::move(bench.model));
  bench.optimizer =
      bound(optim::all_optimizers(), "sgd", {{"lr", "0.2"}}).build({bench.model->named_parameters(), 1});
  bench.options.micro_batch_size = 4;
  bench.options.max_steps = 3;
  const LedgerRecorder recorder = trained(bench);
  hoard().clear();
  REQUIRE(recorder.ledgers.size() == 1);
  const profile::RunLedger& ledger = recorder.ledgers.front();
  CHECK(*profile::unexplained(ledger.peak) >= 3 * kLeak);
  REQUIRE(ledger.growth);
  CHECK(ledger.growth->bytes == kLeak);
  REQUIRE(ledger.growth->layers.size() == 1);
  CHECK(ledger.growth->layers.front().layer == "leak");
  CHECK(ledger.growth->layers.front().bytes == kLeak);
}

}  // namespace gputrain::train
