#include "profile/ledger.h"

#include "base/text.h"
#include "base/units.h"

#include <utility>

namespace gputrain::profile {
namespace {

constexpr std::size_t kLayersTold = 5;

std::string told(const std::vector<LayerBytes>& parts) {
  std::vector<std::string> texts;
  for (const auto& [name, bytes] : parts) texts.push_back(concat(name, " ", format_bytes(bytes)));
  return join(texts, ", ");
}

}  // namespace

std::string describe_live(const Ledger& ledger) {
  std::vector<LayerBytes> parts;
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (ledger.bytes[i] > 0) parts.push_back({kClassNames[i], ledger.bytes[i]});
  }
  if (const auto rest = unexplained(ledger); rest && *rest > 0) parts.push_back({"unexplained", *rest});
  std::string text = "live: " + (parts.empty() ? "nothing" : told(largest(std::move(parts), kClasses + 1)));
  if (ledger.layers.empty()) return text;
  return text + "\nkept for backward, largest layers: " + told(largest(ledger.layers, kLayersTold));
}

}  // namespace gputrain::profile
