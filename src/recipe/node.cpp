#include "recipe/node.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <tuple>
#include <utility>

namespace gputrain::recipe {

namespace {

// In one line, and nothing that a terminal or a comment in YAML would take for more than text.
std::string in_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  return text;
}

}  // namespace

std::string Origin::text() const {
  if (!argument.empty()) return "argument " + in_one_line(argument);
  if (line == 0) return in_one_line(file);
  return concat(in_one_line(file), ':', line, ':', column);
}

const Node* Node::find(std::string_view key) const {
  const std::string wanted = canonical(key);
  for (const auto& [name, value] : map) {
    if (canonical(name.scalar) == wanted) return &value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find(key));
}

Extent extent_of(const Node& node) {
  Extent extent;
  extent.bytes = node.scalar.size();
  const auto include = [&extent](const Node& inner) {
    const Extent of_inner = extent_of(inner);
    extent.values += of_inner.values;
    extent.bytes += of_inner.bytes;
    extent.depth = std::max(extent.depth, of_inner.depth + 1);
  };
  for (const Node& element : node.list) include(element);
  for (const auto& [key, value] : node.map) {
    extent.values += 1;
    extent.bytes += key.scalar.size();
    include(value);
  }
  return extent;
}

std::string canonical(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

const Node* find_path(const Node& root, std::string_view path) {
  const Node* node = &root;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    node = node->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

Origin origin_of(const Node& root, std::string_view path) {
  if (const Node* node = find_path(root, path)) return node->origin;
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? root.origin : origin_of(root, path.substr(0, dot));
}

void sort_by_position(std::vector<Problem>& problems) {
  const auto place = [](const Problem& problem) {
    const Origin& origin = problem.origin;
    return std::tie(origin.argument, origin.file, origin.line, origin.column);
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const Problem& a, const Problem& b) { return place(a) < place(b); });
}

std::string text_of(const std::vector<Problem>& problems) {
  std::vector<std::string> lines;
  for (const Problem& problem : problems) {
    const std::string origin = problem.origin.text();
    lines.push_back(in_one_line(origin.empty() ? problem.text : concat(origin, ": ", problem.text)));
  }
  return join(lines, "\n");
}

}  // namespace gputrain::recipe
