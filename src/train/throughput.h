#pragma once

#include "train/records.h"

#include <cstdint>
#include <optional>

namespace gputrain::train {

// Mean throughput as docs/metrics.md defines it: samples of applied and skipped windows over the seconds
// spent on them, warm-up left out. In the header, so that reports need no other part of this room.
class Throughput {
 public:
  void add(const StepRecord& record) {
    if (record.warmup) return;
    samples_ += record.samples;
    seconds_ += record.seconds;
  }

  // Samples per second; absent: nothing was measured yet.
  std::optional<double> rate() const {
    if (samples_ == 0 || !(seconds_ > 0)) return std::nullopt;
    return static_cast<double>(samples_) / seconds_;
  }

  void reset() { *this = Throughput(); }

 private:
  std::int64_t samples_ = 0;
  double seconds_ = 0;
};

// Of this one window.
inline std::optional<double> samples_per_second(const StepRecord& record) {
  Throughput one_window;
  one_window.add(record);
  return one_window.rate();
}

}  // namespace gputrain::train
