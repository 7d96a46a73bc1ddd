#include "data/order.h"

#include "support/catch.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace gputrain::data;
using Ids = std::vector<std::int64_t>;

namespace {

std::vector<std::int64_t> micro_batch_sizes(const Window& window) {
  std::vector<std::int64_t> sizes;
  for (const Ids& micro_batch : window.micro_batches)
    sizes.push_back(static_cast<std::int64_t>(micro_batch.size()));
  return sizes;
}

Ids joined(const Window& window) {
  Ids ids;
  for (const Ids& micro_batch : window.micro_batches)
    ids.insert(ids.end(), micro_batch.begin(), micro_batch.end());
  return ids;
}

// The ids of the next `windows` windows.
Ids take(WindowPlan& plan, int windows) {
  Ids ids;
  for (int i = 0; i < windows; ++i) {
    const Ids more = joined(plan.next());
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

}  // namespace

TEST_CASE("epoch_order: is the known order of a seed and epoch, on every platform", "[data]") {
  REQUIRE(epoch_order(1, 0, 10) == Ids{1, 5, 8, 6, 3, 7, 0, 9, 4, 2});
  REQUIRE(epoch_order(1, 1, 10) == Ids{0, 1, 5, 9, 6, 2, 7, 8, 4, 3});
  REQUIRE(epoch_order(2, 0, 10) == Ids{1, 5, 7, 6, 9, 0, 3, 8, 2, 4});
}

TEST_CASE("epoch_order: holds every sample exactly once", "[data]") {
  for (const std::int64_t size : {0, 1, 2, 3, 1000}) {
    Ids order = epoch_order(9, 4, size);
    std::sort(order.begin(), order.end());
    Ids expected(static_cast<std::size_t>(size));
    std::iota(expected.begin(), expected.end(), std::int64_t{0});
    REQUIRE(order == expected);
  }
}

TEST_CASE("epoch_order: all orders of three samples turn up about equally often", "[data]") {
  std::vector<std::pair<Ids, int>> counts;
  for (std::int64_t epoch = 0; epoch < 6000; ++epoch) {
    const Ids order = epoch_order(5, epoch, 3);
    const auto known =
        std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == order; });
    if (known == counts.end()) {
      counts.emplace_back(order, 1);
    } else {
      ++known->second;
    }
  }
  REQUIRE(counts.size() == 6);
  // 1000 of each are expected with a standard deviation of 29.
  for (const auto& [order, count] : counts) REQUIRE(std::abs(count - 1000) < 150);
}

TEST_CASE("steps_per_epoch: a short last window counts, and there is at least one", "[data]") {
  REQUIRE(steps_per_epoch(10, 2, 2) == 3);  // 4, 4, 2
  REQUIRE(steps_per_epoch(8, 2, 2) == 2);
  REQUIRE(steps_per_epoch(7, 2, 2) == 2);  // 4, 3
  REQUIRE(steps_per_epoch(3, 1, 8) == 1);
  REQUIRE(steps_per_epoch(1, 100, 100) == 1);
  REQUIRE(steps_per_epoch(5, std::int64_t{1} << 62, std::int64_t{1} << 62) == 1);
}

TEST_CASE("sequential_batches: cuts 0 to size - 1 in order and keeps the rest", "[data]") {
  REQUIRE(sequential_batches(5, 2) == std::vector<Ids>{{0, 1}, {2, 3}, {4}});
  REQUIRE(sequential_batches(4, 2) == std::vector<Ids>{{0, 1}, {2, 3}});
  REQUIRE(sequential_batches(2, 5) == std::vector<Ids>{{0, 1}});
}

TEST_CASE("window plan: the last window and the last micro-batch of an epoch hold what is left", "[data]") {
  WindowPlan plan(7, 2, 2, 1);
  REQUIRE(plan.steps_per_epoch() == 2);
  const Window first = plan.next();
  const Window second = plan.next();
  const Window third = plan.next();
  REQUIRE(micro_batch_sizes(first) == Ids{2, 2});
  REQUIRE(micro_batch_sizes(second) == Ids{2, 1});
  REQUIRE(micro_batch_sizes(third) == Ids{2, 2});
  REQUIRE(first.samples() == 4);
  REQUIRE(second.samples() == 3);
  REQUIRE(std::vector<bool>{first.last_of_epoch, second.last_of_epoch, third.last_of_epoch} ==
          std::vector<bool>{false, true, false});
  REQUIRE(Ids{first.epoch, second.epoch, third.epoch} == Ids{0, 0, 1});
  REQUIRE(Ids{first.first_position, second.first_position, third.first_position} == Ids{0, 4, 7});
}

TEST_CASE("window plan: an epoch that fits whole windows ends with a full one", "[data]") {
  WindowPlan plan(8, 2, 2, 1);
  REQUIRE_FALSE(plan.next().last_of_epoch);
  const Window second = plan.next();
  REQUIRE(second.last_of_epoch);
  REQUIRE(micro_batch_sizes(second) == Ids{2, 2});
  REQUIRE(plan.next().epoch == 1);
}

TEST_CASE("window plan: more accumulation than an epoch has batches still gives one window", "[data]") {
  WindowPlan plan(3, 1, 8, 1);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const Window window = plan.next();
    REQUIRE(window.epoch == epoch);
    REQUIRE(window.last_of_epoch);
    REQUIRE(micro_batch_sizes(window) == Ids{1, 1, 1});
  }
}

TEST_CASE("window plan: gives out the order of each epoch, which differs from epoch to epoch", "[data]") {
  WindowPlan plan(10, 3, 1, 1);
  REQUIRE(take(plan, 4) == epoch_order(1, 0, 10));
  REQUIRE(take(plan, 4) == epoch_order(1, 1, 10));
  REQUIRE(epoch_order(1, 0, 10) != epoch_order(1, 1, 10));
}

TEST_CASE("window plan: how a batch is split does not change which samples a window holds", "[data]") {
  WindowPlan whole(11, 8, 1, 3);
  WindowPlan halves(11, 4, 2, 3);
  WindowPlan singles(11, 1, 8, 3);
  for (int i = 0; i < 5; ++i) {
    const Ids ids = joined(whole.next());
    REQUIRE(joined(halves.next()) == ids);
    REQUIRE(joined(singles.next()) == ids);
  }
}

TEST_CASE("window plan: continuing at any position yields the remaining order", "[data]") {
  WindowPlan uninterrupted(7, 2, 2, 4);
  std::vector<Window> windows;
  for (int i = 0; i < 6; ++i) windows.push_back(uninterrupted.next());  // three epochs
  for (std::size_t stop = 0; stop < windows.size(); ++stop) {
    INFO("after window " << stop);
    WindowPlan continued(7, 2, 2, 4);
    continued.seek(windows[stop].first_position);
    REQUIRE(continued.position() == windows[stop].first_position);
    for (std::size_t i = stop; i < windows.size(); ++i) {
      const Window window = continued.next();
      REQUIRE(window.micro_batches == windows[i].micro_batches);
      REQUIRE(window.epoch == windows[i].epoch);
      REQUIRE(window.last_of_epoch == windows[i].last_of_epoch);
    }
    REQUIRE(continued.position() == uninterrupted.position());
  }
}

TEST_CASE("window plan: a position inside a window starts a window there and loses no sample", "[data]") {
  WindowPlan plan(10, 2, 2, 4);
  plan.seek(13);  // sample 3 of epoch 1
  const Window first = plan.next();
  REQUIRE(first.epoch == 1);
  REQUIRE(micro_batch_sizes(first) == Ids{2, 2});
  const Window second = plan.next();
  REQUIRE(micro_batch_sizes(second) == Ids{2, 1});
  REQUIRE(second.last_of_epoch);
  Ids rest = joined(first);
  const Ids more = joined(second);
  rest.insert(rest.end(), more.begin(), more.end());
  const Ids order = epoch_order(4, 1, 10);
  REQUIRE(rest == Ids(order.begin() + 3, order.end()));
  REQUIRE(plan.position() == 20);
}

TEST_CASE("window plan: sizes below 1 are refused", "[data]") {
  REQUIRE_THROWS_AS(WindowPlan(0, 1, 1, 0), std::invalid_argument);
  REQUIRE_THROWS_AS(WindowPlan(1, 0, 1, 0), std::invalid_argument);
  REQUIRE_THROWS_AS(WindowPlan(1, 1, 0, 0), std::invalid_argument);
  WindowPlan plan(1, 1, 1, 0);
  REQUIRE_THROWS_AS(plan.seek(-1), std::invalid_argument);
}
