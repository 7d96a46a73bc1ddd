#include "recipe/utf8.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace gputrain::recipe {
namespace {

// Bytes of the well-formed character that `text` starts with; 0 when there is none.
// Source: The Unicode Standard, table 3-7; the first continuation byte excludes overlong forms and
// surrogates.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto within = [](unsigned value, unsigned low, unsigned high) {
    return low <= value && value <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  if (within(lead, 0xC2, 0xDF)) length = 2;
  if (within(lead, 0xE0, 0xEF)) length = 3;
  if (within(lead, 0xF0, 0xF4)) length = 4;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (!within(byte(i), i == 1 ? low : 0x80, i == 1 ? high : 0xBF)) return 0;
  }
  return length;
}

bool is_control(char c) {
  const auto code = static_cast<unsigned char>(c);
  return (code < 0x20 && c != '\t' && c != '\n' && c != '\r') || code == 0x7F;
}

}  // namespace

std::optional<BadByte> find_bad_byte(std::string_view text) {
  BadByte at;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0 || is_control(text.front())) {
      std::array<char, 64> shown{};
      std::snprintf(shown.data(), shown.size(),
                    length == 0 ? "byte 0x%02x is not UTF-8" : "byte 0x%02x is a control character",
                    static_cast<unsigned>(static_cast<unsigned char>(text.front())));
      at.text = shown.data();
      return at;
    }
    const bool ends_line = text.front() == '\n';
    at.line += ends_line ? 1 : 0;
    at.column = ends_line ? 1 : at.column + 1;
    text.remove_prefix(length);
  }
  return std::nullopt;
}

}  // namespace gputrain::recipe
