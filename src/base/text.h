#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace gputrain {

// The arguments written one after the other with operator<<.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// "a, b, c"; `last` replaces the last separator: join({"a","b","c"}, ", ", " or ") is "a, b or c".
std::string join(const std::vector<std::string>& parts, std::string_view separator,
                 std::string_view last = {});

// ASCII letters in lower case, all else as it is.
std::string lower(std::string_view text);

// Shortest decimal text that reads back as the same double ("0.1", "1e-05"), and "nan" for any NaN.
std::string shortest(double value);

// Levenshtein distance with transpositions of neighbours counted as one edit (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, whatever the case of its letters, or "" when none is near enough to be
// what was meant (more than a third of the longer word's letters differ).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace gputrain
