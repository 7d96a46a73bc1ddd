#include "train/throughput.h"

#include "support/catch.h"

using gputrain::train::StepRecord;
using gputrain::train::Throughput;

namespace {

StepRecord window(std::int64_t samples, double seconds) {
  StepRecord record;
  record.samples = samples;
  record.seconds = seconds;
  return record;
}

}  // namespace

TEST_CASE("throughput: samples over seconds, not a mean of rates", "[train]") {
  Throughput throughput;
  throughput.add(window(10, 1));
  throughput.add(window(10, 4));
  CHECK(throughput.rate() == 4.0);
}

TEST_CASE("throughput: skipped windows count, warm-up does not", "[train]") {
  Throughput throughput;
  StepRecord warmup = window(1000, 9);
  warmup.warmup = true;
  throughput.add(warmup);
  CHECK_FALSE(throughput.rate());
  StepRecord skipped = window(10, 2);
  skipped.skipped = true;
  throughput.add(skipped);
  CHECK(throughput.rate() == 5.0);
}

TEST_CASE("throughput: nothing measured is no number", "[train]") {
  Throughput throughput;
  CHECK_FALSE(throughput.rate());
  throughput.add(window(10, 0));
  CHECK_FALSE(throughput.rate());
  throughput.add(window(10, 1));
  throughput.reset();
  CHECK_FALSE(throughput.rate());
}
