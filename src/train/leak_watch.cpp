#include "train/leak_watch.h"

#include "base/text.h"
#include "base/units.h"

#include <utility>

namespace gputrain::train {
namespace {

// What is kept for good after some steps (workspaces, values on their way to the host) does not grow so often
// in a row, nor by so much.
constexpr std::int64_t kWindows = 50;
constexpr std::int64_t kValidations = 4;
constexpr std::int64_t kLeastBytes = 1 << 20;

}  // namespace

void LeakWatch::Growth::add(std::int64_t more) {
  if (more <= 0) {
    *this = {};
    return;
  }
  bytes += more;
  times += 1;
}

std::optional<std::string> LeakWatch::after_window(std::int64_t samples, std::int64_t allocated) {
  if (samples < samples_) return std::nullopt;  // the last one of an epoch
  if (samples > samples_) {
    samples_ = samples;
    windows_ = {};
    allocated_.reset();
  }
  const std::optional<std::int64_t> before = std::exchange(allocated_, allocated);
  if (!before) return std::nullopt;
  windows_.add(allocated - *before);
  return tell(windows_, kWindows, "step");
}

std::optional<std::string> LeakWatch::after_validation(std::int64_t before, std::int64_t after) {
  allocated_.reset();
  validations_.add(after - before);
  return tell(validations_, kValidations, "validation");
}

std::optional<std::string> LeakWatch::tell(const Growth& growth, std::int64_t enough, const char* what) {
  if (is_told_ || growth.times < enough || growth.bytes < kLeastBytes) return std::nullopt;
  is_told_ = true;
  return concat("memory grows: tensors held more after each of the last ", growth.times, ' ', what, "s, ",
                format_bytes(growth.bytes / growth.times), " a ", what,
                "; something that is made there is never freed");
}

}  // namespace gputrain::train
