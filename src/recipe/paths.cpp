#include "recipe/paths.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace gputrain::recipe {
namespace {

constexpr std::size_t kLongest = 100;  // comparing takes the square of it

void add_paths(const Node& node, const std::string& prefix, std::vector<std::string>& paths) {
  for (const auto& [key, value] : node.map) {
    if (prefix.size() + key.scalar.size() >= kLongest) continue;
    std::string path = join_path(prefix, canonical(key.scalar));
    add_paths(value, path, paths);
    paths.push_back(std::move(path));
  }
}

}  // namespace

bool is_path(std::string_view path) {
  const auto is_allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  };
  return !path.empty() && path.front() != '.' && path.back() != '.' &&
         path.find("..") == std::string_view::npos && std::all_of(path.begin(), path.end(), is_allowed);
}

std::pair<std::string, std::string> split_path(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {"", std::string(path)};
  return {std::string(path.substr(0, dot)), std::string(path.substr(dot + 1))};
}

std::string last_part(std::string_view path) {
  return split_path(path).second;
}

std::string join_path(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string(key) : concat(parent, '.', key);
}

Node tree_of(std::string_view path, Node value) {
  const Origin origin = value.origin;
  while (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    Node key;
    key.kind = Node::Kind::kScalar;
    key.origin = origin;
    key.scalar = path.substr(dot + 1);  // npos + 1 is 0
    Node map;
    map.kind = Node::Kind::kMap;
    map.origin = origin;
    map.map.push_back({std::move(key), std::move(value)});
    value = std::move(map);
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return value;
}

std::string nearest_path(const std::vector<std::string>& paths, std::string_view path) {
  if (path.size() > kLongest) return "";
  std::vector<std::string> last_parts;
  last_parts.reserve(paths.size());
  for (const std::string& known : paths) last_parts.push_back(last_part(known));
  const auto path_with = [&](std::string_view part) {
    const auto found = std::find(last_parts.begin(), last_parts.end(), part);
    return found != last_parts.end() ? paths[static_cast<std::size_t>(found - last_parts.begin())] : "";
  };
  if (std::string same = path_with(last_part(path)); !same.empty()) return same;
  if (std::string similar = nearest(path, paths); !similar.empty()) return similar;
  const std::string similar_part = nearest(last_part(path), last_parts);
  return similar_part.empty() ? "" : path_with(similar_part);
}

std::string nearest_path(const Node& root, std::string_view path) {
  std::vector<std::string> paths;
  if (path.size() <= kLongest) add_paths(root, "", paths);
  return nearest_path(paths, path);
}

}  // namespace gputrain::recipe
