#pragma once

#include "recipe/node.h"
#include "recipe/visitor.h"

#include <functional>
#include <string>
#include <vector>

namespace gputrain::recipe {

using Describe = std::function<void(Visitor&)>;

// A key that a recipe can have: its path, "optimizer.momentum", and the kind of component it belongs to,
// "sgd"; "" where it is the recipe's own.
struct KnownKey {
  std::string path;
  std::string kind;
};

// What makes messages about unknown keys helpful.
struct Hints {
  std::string owner;                // what the keys belong to: "adamw" gives "is not a key of adamw"
  std::vector<KnownKey> elsewhere;  // all keys of the recipe
};

// Reads the keys of `map` into the fields that `describe` names and returns every problem: unknown keys (with
// the nearest known one), wrong types, values out of range. Fields of absent keys keep their default.
// `prefix` names the map in messages: "optimizer" gives "optimizer.lr is ...". A key named in `ignore` was
// read by the caller.
std::vector<Problem> bind(const Node& map, const std::string& prefix, const Describe& describe,
                          const std::vector<std::string>& ignore = {}, const Hints& hints = {});

}  // namespace gputrain::recipe
