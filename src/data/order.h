#pragma once

#include <cstdint>
#include <vector>

namespace gputrain::data {

// The numbers 0 .. size - 1 in the order in which `epoch` (from 0) visits them. Depends on nothing but the
// arguments: not on the platform, the standard library, worker counts or what ran before.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t size);

// Windows (updates) that one epoch of `size` samples holds: a short last one counts, so at least one.
// All arguments at least 1.
std::int64_t steps_per_epoch(std::int64_t size, std::int64_t micro_batch_size, std::int64_t accumulation);

// 0 .. size - 1 in order, cut into batches of `batch_size`, the last one maybe shorter: the order of
// validation. batch_size: at least 1.
std::vector<std::vector<std::int64_t>> sequential_batches(std::int64_t size, std::int64_t batch_size);

// The sample numbers of one update.
struct Window {
  std::int64_t epoch = 0;                                // from 0
  bool last_of_epoch = false;                            // the next window begins another epoch
  std::int64_t first_position = 0;                       // samples consumed by all windows before this one
  std::vector<std::vector<std::int64_t>> micro_batches;  // none is empty

  std::int64_t samples() const;
};

// The order of training: window after window, epoch after epoch, without end. A window never spans two
// epochs; the last window of an epoch, and its last micro-batch, hold what is left. Every sample is visited
// exactly once in an epoch.
class WindowPlan {
 public:
  // size, micro_batch_size, accumulation: at least 1, else std::invalid_argument.
  WindowPlan(std::int64_t size, std::int64_t micro_batch_size, std::int64_t accumulation, std::uint64_t seed);

  Window next();

  // Samples consumed by the windows given out so far. This number alone continues the plan.
  std::int64_t position() const { return position_; }

  // Continues after `position` samples. A position that is not the end of a window (the batch size changed
  // since) is fine: the next window starts there. Throws std::invalid_argument when it is negative.
  void seek(std::int64_t position);

  std::int64_t steps_per_epoch() const;

 private:
  void load_epoch(std::int64_t epoch);

  std::int64_t size_;
  std::int64_t micro_batch_size_;
  std::int64_t accumulation_;
  std::uint64_t seed_;
  std::int64_t position_ = 0;
  std::int64_t loaded_epoch_ = -1;
  std::vector<std::int64_t> order_;  // of loaded_epoch_
};

}  // namespace gputrain::data
