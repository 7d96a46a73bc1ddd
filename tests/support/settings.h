#pragma once

#include "recipe/component.h"

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gputrain {

inline recipe::Node scalar(const std::string& text) {
  recipe::Node node;
  node.kind = recipe::Node::Kind::kScalar;
  node.scalar = text;
  return node;
}

// "[1, 2]" is a list of scalars, everything else is one.
inline recipe::Node value(const std::string& text) {
  if (text.empty() || text.front() != '[') return scalar(text);
  recipe::Node node;
  node.kind = recipe::Node::Kind::kList;
  std::istringstream items(text.substr(1, text.size() - 2));
  for (std::string item; std::getline(items >> std::ws, item, ',');) node.list.push_back(scalar(item));
  return node;
}

// A component's settings as a recipe's reader gives them: {{"lr", "0.1"}, {"hidden", "[4]"}}.
inline recipe::Node settings(const std::vector<std::pair<std::string, std::string>>& values) {
  recipe::Node map;
  map.kind = recipe::Node::Kind::kMap;
  for (const auto& [key, text] : values) map.map.push_back({scalar(key), value(text)});
  return map;
}

// The component of that name, bound. Throws std::invalid_argument with the first problem.
template <class Component>
typename Component::Bound bound(const std::vector<Component>& all, const std::string& name,
                                const std::vector<std::pair<std::string, std::string>>& values = {}) {
  std::vector<recipe::Problem> problems;
  auto made = recipe::choose(all, recipe::Choice{name, settings(values)}, "component", {}, problems);
  if (!problems.empty()) throw std::invalid_argument(problems.front().text);
  return made;
}

}  // namespace gputrain
