#pragma once

#include "recipe/node.h"

#include <string>
#include <string_view>
#include <vector>

namespace gputrain::recipe {

struct Document {
  Node root;         // a map, or null when there are problems that leave nothing to read
  std::string text;  // as it was in the file
  std::vector<Problem> problems;
};

// Reads a recipe without judging its keys: syntax, encoding, duplicate keys, size and depth. Aliases and
// merge keys (`<<`) are expanded. Never throws for what a file holds.
Document read_document(const std::string& path);
Document read_text(std::string text, const std::string& file);

// The value of `key=value` on the command line: YAML where it starts with a bracket, a brace or a quote; null
// where it is empty, `~` or `null`; plain text otherwise. `origin` is given to all of its nodes. With a
// problem it is null and unreadable.
Node read_value(std::string_view text, const Origin& origin, std::vector<Problem>& problems);

// "lr: 0.1" for "lr:0.1", which YAML reads as one word; "" where no space is missing.
std::string with_missing_space(std::string_view scalar);

}  // namespace gputrain::recipe
