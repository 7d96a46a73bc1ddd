#include "base/units.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace gputrain {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 9> kByteUnits{{{"B", 1},
                                          {"kB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0},
                                          {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 5> kTimeUnits{{{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}}};

template <std::size_t size>
std::optional<double> parse_quantity(std::string_view text, const std::array<Unit, size>& units) {
  const bool starts_with_digit = !text.empty() && text.front() >= '0' && text.front() <= '9';
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!starts_with_digit || end.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end.ptr - text.data()));
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  for (const Unit& unit : units) {
    if (text == unit.name) return number * unit.factor;
  }
  return std::nullopt;
}

std::string printed(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string two_parts(long long whole, const char* unit, long long rest, const char* rest_unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%lld%s %02lld%s", whole, unit, rest, rest_unit);
  return text.data();
}

}  // namespace

Parsed<std::int64_t> parse_bytes(std::string_view text) {
  const std::optional<double> bytes = parse_quantity(text, kByteUnits);
  // 2^63 is the first double beyond int64_t.
  if (bytes && *bytes < 0x1p63) return {std::llround(*bytes), ""};
  return {std::nullopt, "expected bytes with a unit, as in 500MB or 11.5GiB"};
}

Parsed<double> parse_duration(std::string_view text) {
  const std::optional<double> seconds = parse_quantity(text, kTimeUnits);
  if (seconds && std::isfinite(*seconds)) return {seconds, ""};
  return {std::nullopt, "expected a duration with a unit, as in 90s, 30min, 2h or 1d"};
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would print as 1024.0.
  while (std::abs(value) >= 1023.95 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return concat(printed(unit == 0 ? "%.0f" : "%.1f", value), ' ', kNames[unit]);
}

std::string exact_bytes(std::int64_t bytes) {
  for (const char* name : {"TiB", "GiB", "MiB", "KiB"}) {
    const auto unit =
        std::find_if(kByteUnits.begin(), kByteUnits.end(), [&](const Unit& one) { return one.name == name; });
    const double count = static_cast<double>(bytes) / unit->factor;
    constexpr double kParts = 16;  // a few decimals alone: 11.5, 0.0625
    if (count >= 1 && count * kParts == std::floor(count * kParts)) return concat(shortest(count), name);
  }
  return concat(bytes, "B");
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "n/a";
  if (seconds < 9.95) return printed("%.1fs", seconds);
  if (seconds < 59.5) return printed("%.0fs", seconds);
  const long long minutes = std::llround(seconds / 60);
  if (minutes < 60) return concat(minutes, 'm');
  const long long hours = minutes / 60;
  if (hours < 24) return two_parts(hours, "h", minutes % 60, "m");
  return two_parts(hours / 24, "d", hours % 24, "h");
}

std::string format_count(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

}  // namespace gputrain
