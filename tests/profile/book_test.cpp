#include "profile/book.h"

#include "profile/layers.h"
#include "support/catch.h"

#include <ATen/ops/ones.h>

namespace gputrain::profile {
namespace {

at::Tensor floats(std::int64_t count) {
  return at::ones({count});
}

}  // namespace

TEST_CASE("book: memory that several tensors show counts once, in the first of its classes", "[profile]") {
  Book book(at::kCPU);
  const at::Tensor weight = floats(6);
  const at::Tensor part = weight.narrow(0, 2, 2);
  book.keep("fc", part);
  book.enter(Class::kInput, weight);
  CHECK(book.sum_up()[Class::kInput] == 24);
  CHECK(book.sum_up()[Class::kActivations] == 0);
  CHECK(book.sum_up().layers.empty());
  book.enter(Class::kWeights, part);
  book.enter(Class::kGradients, weight);
  const Ledger ledger = book.sum_up();
  CHECK(ledger[Class::kWeights] == 24);
  CHECK(accounted(ledger) == 24);
}

TEST_CASE("book: nothing is kept alive, and what is gone counts no more", "[profile]") {
  Book book(at::kCPU);
  at::Tensor gone = floats(5);
  const at::Tensor stays = floats(3);
  book.enter(Class::kInput, gone);
  book.enter(Class::kInput, stays);
  CHECK(book.sum_up()[Class::kInput] == 32);
  gone.reset();
  CHECK(book.sum_up()[Class::kInput] == 12);
  // New memory is nobody's, even where it lies at an address that had an owner.
  for (int i = 0; i < 20; ++i) {
    const at::Tensor other = floats(5);
    CHECK(accounted(book.sum_up()) == 12);
  }
}

TEST_CASE("book: undefined tensors and other devices are left out", "[profile]") {
  Book book(at::Device(at::kCUDA, 0));
  book.enter(Class::kWeights, at::Tensor());
  book.enter(Class::kWeights, floats(4));
  book.keep("fc", floats(4));
  CHECK(accounted(book.sum_up()) == 0);
}

TEST_CASE("book: an activation belongs to the layer that kept it first", "[profile]") {
  Book book(at::kCPU);
  const at::Tensor first = floats(2), second = floats(3), third = floats(4);
  book.keep("conv", second);
  book.keep("norm", first);
  book.keep("norm", second);
  book.keep("conv", third);
  CHECK(text(book.sum_up().layers) == "conv 28, norm 8");
  CHECK(book.sum_up()[Class::kActivations] == 36);
}

TEST_CASE("ledger: what is left over, cached and the driver's own", "[profile]") {
  Ledger ledger;
  ledger[Class::kWeights] = 40;
  ledger[Class::kActivations] = 50;
  CHECK(!unexplained(ledger));
  CHECK(!cached(ledger));
  CHECK(!context(ledger));
  ledger.memory.allocated = 100;
  CHECK(unexplained(ledger) == 10);
  ledger.memory.device = 130;
  CHECK(context(ledger) == 30);
  ledger.memory.reserved = 120;
  CHECK(cached(ledger) == 20);
  CHECK(context(ledger) == 10);
  ledger.memory.device = 110;  // of a CPU: not all of it was touched
  CHECK(!context(ledger));
  RunLedger run;
  run.peak = ledger;
  CHECK(!temporaries(run));
  run.allocated_peak = 175;
  CHECK(temporaries(run) == 75);
}

TEST_CASE("ledger: an out-of-memory text names the classes and the layers that keep most", "[profile]") {
  Ledger ledger;
  CHECK(describe_live(ledger) == "live: nothing");
  ledger[Class::kWeights] = 1 << 20;
  ledger[Class::kActivations] = 7 << 20;
  ledger[Class::kInput] = 512;
  CHECK(describe_live(ledger) == "live: activations 7.0 MiB, weights 1.0 MiB, input 512 B");
  ledger.memory.allocated = (10 << 20) + 512;
  ledger.layers = {{"a", 1 << 20}, {"b", 2 << 20}, {"c", 1 << 20}, {"d", 1 << 20}, {"e", 1 << 20}, {"f", 5}};
  CHECK(describe_live(ledger) ==
        "live: activations 7.0 MiB, unexplained 2.0 MiB, weights 1.0 MiB, input 512 B\n"
        "kept for backward, largest layers: b 2.0 MiB, a 1.0 MiB, c 1.0 MiB, d 1.0 MiB, e 1.0 MiB");
}

}  // namespace gputrain::profile
