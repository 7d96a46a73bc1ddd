#include "data/order.h"

#include "kernels/random_math.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace gputrain::data {
namespace {

// Keeps the order's random numbers apart from those of other uses of the same seed.
constexpr std::uint64_t kOrderPurpose = 0x6F72646572ull;  // "order"

std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return value / by + (value % by != 0);
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t size) {
  const std::uint64_t key = kernels::random_bits(seed ^ kOrderPurpose, static_cast<std::uint64_t>(epoch));
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[kernels::random_below(kernels::random_bits(key, i), i)]);
  }
  return order;
}

std::int64_t steps_per_epoch(std::int64_t size, std::int64_t micro_batch_size, std::int64_t accumulation) {
  return divide_up(divide_up(size, micro_batch_size), accumulation);
}

std::vector<std::vector<std::int64_t>> sequential_batches(std::int64_t size, std::int64_t batch_size) {
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t first = 0; first < size; first += batches.back().size()) {
    std::vector<std::int64_t> batch(static_cast<std::size_t>(std::min(batch_size, size - first)));
    std::iota(batch.begin(), batch.end(), first);
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::int64_t Window::samples() const {
  std::int64_t count = 0;
  for (const auto& micro_batch : micro_batches) count += static_cast<std::int64_t>(micro_batch.size());
  return count;
}

WindowPlan::WindowPlan(std::int64_t size, std::int64_t micro_batch_size, std::int64_t accumulation,
                       std::uint64_t seed)
    : size_(size), micro_batch_size_(micro_batch_size), accumulation_(accumulation), seed_(seed) {
  if (size < 1) throw std::invalid_argument("WindowPlan: no samples");
  if (micro_batch_size < 1) throw std::invalid_argument("WindowPlan: micro_batch_size is less than 1");
  if (accumulation < 1) throw std::invalid_argument("WindowPlan: accumulation is less than 1");
}

Window WindowPlan::next() {
  load_epoch(position_ / size_);
  Window window;
  window.epoch = loaded_epoch_;
  window.first_position = position_;
  std::int64_t begin = position_ % size_;
  for (std::int64_t micro = 0; micro < accumulation_ && begin < size_; ++micro) {
    const std::int64_t end = begin + std::min(micro_batch_size_, size_ - begin);
    window.micro_batches.emplace_back(order_.begin() + begin, order_.begin() + end);
    begin = end;
  }
  window.last_of_epoch = begin == size_;
  position_ = loaded_epoch_ * size_ + begin;
  return window;
}

void WindowPlan::seek(std::int64_t position) {
  if (position < 0) throw std::invalid_argument("WindowPlan: negative position");
  position_ = position;
}

std::int64_t WindowPlan::steps_per_epoch() const {
  return data::steps_per_epoch(size_, micro_batch_size_, accumulation_);
}

void WindowPlan::load_epoch(std::int64_t epoch) {
  if (epoch == loaded_epoch_) return;
  order_ = epoch_order(seed_, epoch, size_);
  loaded_epoch_ = epoch;
}

}  // namespace gputrain::data
