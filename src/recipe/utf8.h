#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gputrain::recipe {

// A byte that a recipe may not hold, its place counted from 1 in lines and characters.
struct BadByte {
  int line = 1;
  int column = 1;
  std::string text;  // "byte 0xff is not UTF-8"
};

// The first byte that is not part of well-formed UTF-8, or is a control character other than tab and line
// ends (yaml-cpp takes 0x04 for the end of the file, and would drop what follows).
std::optional<BadByte> find_bad_byte(std::string_view text);

}  // namespace gputrain::recipe
