#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gputrain {

// What reading a text gives: a value, or what was expected in its place ("expected bytes with a unit, ...").
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string error;
};

// "11.5GiB" and "4MB": KiB, MiB, GiB, TiB count in 1024s, B, kB, MB, GB, TB in 1000s. A bare number is
// refused.
Parsed<std::int64_t> parse_bytes(std::string_view text);

// "90s", "30min", "2h", "1d", "250ms" in seconds. A bare number is refused.
Parsed<double> parse_duration(std::string_view text);

std::string format_bytes(std::int64_t bytes);  // "512 B", "9.8 GiB"
std::string exact_bytes(std::int64_t bytes);   // what parse_bytes reads as the same: "11.5GiB", "1000000001B"
std::string format_duration(double seconds);   // "0.4s", "42s", "13m", "1h 02m", "2d 03h"
std::string format_count(std::int64_t count);  // "1,234,567"

}  // namespace gputrain
