#pragma once

#include "recipe/node.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gputrain::recipe {

// Whether `path` can be one of a key: words with dots between them.
bool is_path(std::string_view path);

// {"optimizer", "lr"} of "optimizer.lr", {"", "seed"} of "seed".
std::pair<std::string, std::string> split_path(std::string_view path);

// "lr" of "optimizer.lr".
std::string last_part(std::string_view path);

// "optimizer.lr" of "optimizer" and "lr", "seed" of "" and "seed".
std::string join_path(std::string_view parent, std::string_view key);

// {optimizer: {lr: value}} for "optimizer.lr", all of it from where `value` is.
Node tree_of(std::string_view path, Node value);

// The one of `paths` that `path` most likely means: one with the same last part ("optimizer.lr" for "lr"),
// else the most similar one, else the one whose last part is ("optimizer.momentum" for "momentm"); "" where
// there is none. Paths that are too long to be typed are left out.
std::string nearest_path(const std::vector<std::string>& paths, std::string_view path);

// The same of the keys in `root`.
std::string nearest_path(const Node& root, std::string_view path);

}  // namespace gputrain::recipe
