#pragma once

#include "base/error.h"
#include "base/text.h"

#include <charconv>
#include <fstream>
#include <functional>
#include <istream>
#include <string>

namespace gputrain::data {

// Throws Error(kData) naming the path when it is no text file that can be read.
std::ifstream open_text_file(const std::string& path);

// Calls `read` with each line and its place, "name:3"; lines that are empty or begin with # are left out.
void for_each_line(std::istream& in, const std::string& name,
                   const std::function<void(const std::string& line, const std::string& place)>& read);

// The number that `word` is as a whole. Throws Error(kData); `expected` says what lines look like.
template <class Number>
Number parse_number(const std::string& word, const std::string& place, const char* expected) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size()) return value;
  throw Error(ExitCode::kData, concat(place, ": found ", word, "; expected lines of ", expected));
}

}  // namespace gputrain::data
