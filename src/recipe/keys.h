#pragma once

#include "recipe/bind.h"

#include <string>
#include <vector>

namespace gputrain::recipe {

// One key of a description.
struct Key {
  std::string path;  // "optimizer", "logging.log_every"
  bool is_component = false;
  std::string default_name;  // of a component
};

// All keys that `describe` names, those of its sections included, with `prefix` (unless empty) before each.
std::vector<Key> keys(const Describe& describe, const std::string& prefix = "");

}  // namespace gputrain::recipe
