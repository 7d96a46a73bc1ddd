#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace gputrain::testing {

inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline std::vector<nlohmann::json> of_kind(const std::vector<nlohmann::json>& lines,
                                           const std::string& kind) {
  std::vector<nlohmann::json> some;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(some),
               [&](const nlohmann::json& line) { return line.at("kind") == kind; });
  return some;
}

}  // namespace gputrain::testing
