#include "recipe/paths.h"

#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gputrain::recipe {
namespace {

constexpr std::size_t kLongest = 100;  // comparing takes the square of it

void add_paths(const Node& node, const std::string& prefix, std::vector<std::string>& paths) {
  for (const auto& [key, value] : node.map) {
    if (prefix.size() + key.scalar.size() >= kLongest) continue;
    std::string path = prefix + canonical(key.scalar);
    add_paths(value, path + '.', paths);
    paths.push_back(std::move(path));
  }
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

}  // namespace

std::string nearest_path(const Node& root, std::string_view path) {
  if (path.size() > kLongest) return "";
  std::vector<std::string> paths;
  add_paths(root, "", paths);
  std::vector<std::string> last_parts;
  last_parts.reserve(paths.size());
  for (const std::string& known : paths) last_parts.emplace_back(last_part(known));
  const auto path_with = [&](std::string_view part) {
    const auto found = std::find(last_parts.begin(), last_parts.end(), part);
    return found != last_parts.end() ? paths[static_cast<std::size_t>(found - last_parts.begin())] : "";
  };
  if (std::string same = path_with(last_part(path)); !same.empty()) return same;
  if (std::string similar = nearest(path, paths); !similar.empty()) return similar;
  const std::string similar_part = nearest(last_part(path), last_parts);
  return similar_part.empty() ? "" : path_with(similar_part);
}

}  // namespace gputrain::recipe
