#pragma once

#include <string>
#include <vector>

namespace gputrain::device {

// An environment variable that changes what CUDA, LibTorch or a library below it does.
struct WatchedVariable {
  const char* name;
  bool (*matters)(const std::string& value);  // false: with this value it changes nothing
  bool hurts;                                 // a run is slower or computes something else than was asked for
  const char* effect;                         // on training, when it matters
};

// All that are taken down in an Environment, by name.
const std::vector<WatchedVariable>& watched_variables();

}  // namespace gputrain::device
