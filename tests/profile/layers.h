#pragma once

#include "profile/ledger.h"

#include <string>

namespace gputrain::profile {

// "conv 28, norm 8", for comparisons whose failure can be read.
inline std::string text(const std::vector<LayerBytes>& layers) {
  std::string all;
  for (const auto& [layer, bytes] : layers) {
    all += (all.empty() ? "" : ", ") + layer + " " + std::to_string(bytes);
  }
  return all;
}

}  // namespace gputrain::profile
