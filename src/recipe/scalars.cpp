#include "recipe/scalars.h"

#include "base/file.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

namespace gputrain::recipe {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The whole text as a number, or nothing. from_chars takes no `+`, but words like "inf".
template <class Number>
std::optional<Number> convert(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return {};
  }
  const std::string_view unsigned_text = text.substr(!text.empty() && text.front() == '-' ? 1 : 0);
  if (unsigned_text.empty() || (!is_digit(unsigned_text.front()) && unsigned_text.front() != '.')) return {};
  const bool leading_zero = unsigned_text.size() > 1 && unsigned_text[0] == '0' && is_digit(unsigned_text[1]);
  if (leading_zero) return {};
  Number number{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size()) return {};
  return number;
}

// What to add to "expected a number" for a text that is none.
std::string number_hint(const Node& node) {
  if (node.kind != Node::Kind::kScalar) return "";
  if (node.quoted) return " (without quotes)";
  const std::string text = lower(node.scalar);
  const std::string_view digits = std::string_view(text).substr(text.find_first_not_of("+-") == 1 ? 1 : 0);
  if (contains(digits, "nan") || contains(digits, "inf")) return " (finite)";
  if (digits.empty() || !(is_digit(digits.front()) || digits.front() == '.')) return "";
  if (contains(digits, "_")) return " (without _)";
  if (digits.size() > 1 && digits[0] == '0' && contains("xob", digits.substr(1, 1))) return " (decimal)";
  if (digits.size() > 1 && digits[0] == '0' && is_digit(digits[1])) return " (without leading zeros)";
  return "";
}

std::string integer_hint(const Node& node) {
  if (node.quoted || !convert<double>(node.scalar)) return number_hint(node);
  if (node.scalar.find_first_not_of("+-0123456789") == std::string::npos) return " below 2^63";
  return " (digits alone, no point or exponent)";
}

bool inside(double value, Range range) {
  const bool high_enough = range.min_open ? value > range.min : value >= range.min;
  const bool low_enough = range.max_open ? value < range.max : value <= range.max;
  return high_enough && low_enough;
}

// Whole numbers digit by digit: 1000000000, where shortest() says 1e+09.
std::string bound_text(double bound) {
  constexpr double kExact = 1e15;
  const bool whole = std::abs(bound) < kExact && bound == std::floor(bound);
  return whole ? std::to_string(static_cast<std::int64_t>(bound)) : shortest(bound);
}

bool fits_float(double value) {
  const auto narrow = static_cast<float>(value);
  return std::isfinite(narrow) && (narrow != 0 || value == 0);
}

std::optional<double> epochs_of(std::string_view text) {
  if (text.size() < 3 || text.substr(text.size() - 2) != "ep") return {};
  return convert<double>(text.substr(0, text.size() - 2));
}

std::string expected_range(const std::string& name, Range range) {
  return "expected " + range_text(name, range);
}

}  // namespace

std::string range_text(const std::string& name, Range range) {
  const bool has_min = std::isfinite(range.min);
  const bool has_max = std::isfinite(range.max);
  if (!has_max) return concat(name, range.min_open ? " > " : " >= ", bound_text(range.min));
  const std::string below = concat(name, range.max_open ? " < " : " <= ", bound_text(range.max));
  if (!has_min) return below;
  return concat(bound_text(range.min), range.min_open ? " < " : " <= ", below);
}

std::string show(const Node& node) {
  constexpr std::size_t kLongest = 60;
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kScalar:
      break;
  }
  std::string text = node.scalar.size() <= kLongest ? node.scalar : node.scalar.substr(0, kLongest) + "...";
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  return node.quoted || text.empty() ? concat('"', text, '"') : text;
}

Parsed<double> read_number(const Node& node, const std::string& name, Range range) {
  const bool plain = node.kind == Node::Kind::kScalar && !node.quoted;
  const std::optional<double> number = plain ? convert<double>(node.scalar) : std::nullopt;
  if (!number) return {{}, "expected a number" + number_hint(node)};
  if (!inside(*number, range)) return {{}, expected_range(name, range)};
  if (!fits_float(*number)) return {{}, "expected a number that a 32-bit float can hold"};
  return {number, ""};
}

Parsed<std::int64_t> read_integer(const Node& node, const std::string& name, Range range) {
  const bool plain = node.kind == Node::Kind::kScalar && !node.quoted;
  const std::optional<std::int64_t> integer = plain ? convert<std::int64_t>(node.scalar) : std::nullopt;
  if (!integer) return {{}, "expected an integer" + integer_hint(node)};
  if (!inside(static_cast<double>(*integer), range)) return {{}, expected_range(name, range)};
  return {integer, ""};
}

Parsed<bool> read_boolean(const Node& node) {
  const bool plain = node.kind == Node::Kind::kScalar && !node.quoted;
  if (plain && node.scalar == "true") return {true, ""};
  if (plain && node.scalar == "false") return {false, ""};
  return {{}, "expected true or false"};
}

Parsed<std::string> read_text_value(const Node& node) {
  if (node.kind == Node::Kind::kScalar) return {node.scalar, ""};
  return {{}, "expected text"};
}

Parsed<double> read_duration(const Node& node) {
  Parsed<double> seconds = parse_duration(node.scalar);
  if (seconds.value && *seconds.value <= 0) return {{}, "expected a duration above 0"};
  return seconds;
}

Parsed<std::int64_t> read_bytes(const Node& node) {
  Parsed<std::int64_t> bytes = parse_bytes(node.scalar);
  if (bytes.value && *bytes.value <= 0) return {{}, "expected more than 0 bytes"};
  return bytes;
}

Parsed<Interval> read_interval(const Node& node) {
  constexpr double kMost = 1e12;
  const Parsed<Interval> refused{{}, "expected steps (100), epochs (1ep) or time (30min), above 0"};
  Interval interval;
  if (const auto steps = convert<std::int64_t>(node.scalar); steps && !node.quoted) {
    interval = {static_cast<double>(*steps), Interval::Unit::kSteps};
  } else if (const auto epochs = epochs_of(node.scalar)) {
    interval = {*epochs, Interval::Unit::kEpochs};
  } else if (const auto seconds = parse_duration(node.scalar).value) {
    interval = {*seconds, Interval::Unit::kSeconds};
  }
  if (interval.count > kMost) return {{}, "expected at most 1000000000000 steps, epochs or seconds"};
  return interval.count > 0 ? Parsed<Interval>{interval, ""} : refused;
}

Parsed<std::string> read_device(const Node& node) {
  constexpr std::string_view kIndexed = "cuda:";
  const std::string_view text = node.scalar;
  const bool is_word = text == "auto" || text == "cpu" || text == "cuda";
  const std::string_view index =
      text.substr(0, kIndexed.size()) == kIndexed ? text.substr(kIndexed.size()) : "";
  const bool is_indexed =
      !index.empty() && index.size() <= 2 && std::all_of(index.begin(), index.end(), is_digit);
  if (node.kind == Node::Kind::kScalar && (is_word || is_indexed)) return {node.scalar, ""};
  return {{}, "expected auto, cpu, cuda or cuda:N"};
}

Parsed<std::string> read_path(const Node& node) {
  if (node.kind != Node::Kind::kScalar || node.scalar.empty()) return {{}, "expected a file or folder"};
  const fs::path written = expand_home(node.scalar);
  const fs::path base = node.origin.argument.empty() ? fs::path(node.origin.file).parent_path() : fs::path();
  std::error_code error;
  const fs::path absolute = fs::absolute(base / written, error);
  return {absolute.lexically_normal().string(), ""};
}

}  // namespace gputrain::recipe
