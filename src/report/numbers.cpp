#include "report/numbers.h"

#include "base/text.h"
#include "base/units.h"

#include <cmath>
#include <cstdio>

namespace gputrain::report {
namespace {

std::string printed(const char* format, int decimals, double value) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, format, decimals, value);
  return buffer;
}

bool fits(double value, double smallest) {
  const double size = std::abs(value);
  return !std::isfinite(value) || size == 0 || (size >= smallest && size < 1e6);
}

// Three digits, so that the figures of a column keep their width.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

}  // namespace

std::string fixed(double value, int decimals) {
  if (std::isnan(value)) return "nan";
  return printed("%.*f", decimals, value);
}

std::string scientific(double value) {
  return std::isnan(value) ? "nan" : printed("%.*e", 1, value);
}

std::string loss_text(double value) {
  return fits(value, 1e-3) ? fixed(value, 3) : scientific(value);
}

std::string norm_text(double value) {
  return fits(value, 1e-2) ? fixed(value, 2) : scientific(value);
}

std::string rate_text(std::optional<double> per_second) {
  if (!per_second) return "n/a";
  if (*per_second >= 999.5 && *per_second < 1e15) return format_count(std::llround(*per_second));
  return three_digits(*per_second);
}

std::string percent_text(double fraction, int decimals) {
  return std::isfinite(fraction) ? fixed(100 * fraction, decimals) + "%" : "n/a";
}

std::string milliseconds_text(std::optional<double> seconds) {
  return seconds ? three_digits(1000 * *seconds) + " ms" : "n/a";
}

std::string seconds_text(double seconds) {
  if (seconds < 59.95) return fixed(seconds, 1) + " s";
  const auto whole = std::llround(seconds);
  if (whole >= 3600) return format_duration(seconds);
  const std::string rest = std::to_string(whole % 60);
  return concat(whole / 60, rest.size() < 2 ? "m 0" : "m ", rest, "s");
}

}  // namespace gputrain::report
