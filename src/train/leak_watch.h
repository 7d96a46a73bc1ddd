#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gputrain::train {

// Notices that what tensors hold grows with each step, or with each validation: something that is made there
// is never freed. Fed with the allocator's count at places where nothing of a step or a validation is alive.
class LeakWatch {
 public:
  // After an update of `samples`, warm-up over. Returns what to tell, once, when it was more after each of
  // many windows of equal size in a row.
  std::optional<std::string> after_window(std::int64_t samples, std::int64_t allocated);

  // The same of validations, of which each held so much before and after it.
  std::optional<std::string> after_validation(std::int64_t before, std::int64_t after);

 private:
  // How much it grew, and how often in a row.
  struct Growth {
    std::int64_t bytes = 0;
    std::int64_t times = 0;

    void add(std::int64_t more);
  };

  std::optional<std::string> tell(const Growth& growth, std::int64_t enough, const char* what);

  std::int64_t samples_ = 0;               // in a window, of those that are compared
  std::optional<std::int64_t> allocated_;  // after the last window; absent: something else was done since
  Growth windows_;
  Growth validations_;
  bool is_told_ = false;
};

}  // namespace gputrain::train
