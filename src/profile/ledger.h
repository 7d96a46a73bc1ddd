#pragma once

#include "device/memory_reading.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

// What memory is used for, as plain data. docs/ledger.md says how each number is measured.
namespace gputrain::profile {

// In order of precedence: memory that two classes share belongs to the first of them.
enum class Class {
  kWeights,
  kGradients,
  kMasters,  // float32 copies of 16-bit weights
  kOptimizerStates,
  kAverages,
  kBuffers,  // of the model, with their copy from before the window
  kUpdate,   // scalars of the update: loss scale, learning rates, counters
  kDataSet,  // samples that lie on the device
  kInput,    // the micro-batch
  kActivations,
  kOutputs,     // of layers in work, of the model, and the loss, where no backward pass needs them
  kWorkspaces,  // that libraries keep from call to call
  kRounding,    // by which the allocator's blocks are larger than what was asked for
};
inline constexpr std::array kClassNames{
    "weights",  "gradients", "master copies", "optimizer states", "averages",   "buffers",           "update",
    "data set", "input",     "activations",   "outputs",          "workspaces", "allocator rounding"};
inline constexpr std::size_t kClasses = kClassNames.size();

struct LayerBytes {
  std::string layer;  // its name in the model
  std::int64_t bytes = 0;

  bool operator==(const LayerBytes&) const = default;
};

// One moment.
struct Ledger {
  std::array<std::int64_t, kClasses> bytes{};
  std::vector<LayerBytes> layers;  // the activations, in the order of the forward pass
  device::MemoryReading memory;

  std::int64_t& operator[](Class kind) { return bytes.at(static_cast<std::size_t>(kind)); }
  std::int64_t operator[](Class kind) const { return bytes.at(static_cast<std::size_t>(kind)); }
};

// Growth that is worth a word: some scalars more or less are none.
inline constexpr std::int64_t kLeastGrowth = 64 << 10;

// Memory that is not accounted for after a pass, and was not there before it.
struct Growth {
  std::int64_t bytes = 0;
  // By layer, as seen around the calls of the forward pass, largest first; not those that hardly grew.
  std::vector<LayerBytes> layers;
};

// What one run measures.
struct RunLedger {
  std::string device;  // "cuda:0"
  Ledger start;        // before the first window
  Ledger peak;         // at the end of the last forward pass of `window`
  std::int64_t window = 0;
  std::int64_t micro_batches = 0;              // of the window
  std::optional<std::int64_t> allocated_peak;  // the allocator's, over the window
  std::optional<Growth> growth;                // in the window's last pass; absent: the run had not warmed up
};

// The sum of the classes.
inline std::int64_t accounted(const Ledger& ledger) {
  return std::accumulate(ledger.bytes.begin(), ledger.bytes.end(), std::int64_t{0});
}

// Allocated less the classes: what nobody is known to hold. Negative only by a mistake of the account.
inline std::optional<std::int64_t> unexplained(const Ledger& ledger) {
  if (!ledger.memory.allocated) return std::nullopt;
  return *ledger.memory.allocated - accounted(ledger);
}

// Reserved less allocated.
inline std::optional<std::int64_t> cached(const Ledger& ledger) {
  if (!ledger.memory.reserved || !ledger.memory.allocated) return std::nullopt;
  return *ledger.memory.reserved - *ledger.memory.allocated;
}

// The driver's number less what the allocator took. On a CPU resident memory less what is allocated; absent
// where more is allocated than was ever touched.
inline std::optional<std::int64_t> context(const Ledger& ledger) {
  const auto& taken = ledger.memory.reserved ? ledger.memory.reserved : ledger.memory.allocated;
  if (!ledger.memory.device || !taken || *ledger.memory.device < *taken) return std::nullopt;
  return *ledger.memory.device - *taken;
}

// How far the window's peak is above what is allocated at `peak`: workspaces and temporaries, mostly of the
// backward pass.
inline std::optional<std::int64_t> temporaries(const RunLedger& ledger) {
  const auto& now = ledger.peak.memory.allocated;
  if (!ledger.allocated_peak || !now) return std::nullopt;
  return std::max<std::int64_t>(*ledger.allocated_peak - *now, 0);
}

// Those that keep most, largest first, at most `count`.
inline std::vector<LayerBytes> largest(std::vector<LayerBytes> layers, std::size_t count) {
  const auto larger = [](const LayerBytes& a, const LayerBytes& b) { return a.bytes > b.bytes; };
  std::stable_sort(layers.begin(), layers.end(), larger);
  if (layers.size() > count) layers.resize(count);
  return layers;
}

// What is live, by class, and the layers that keep most of it: lines for the text of an out-of-memory error,
// without a newline at the end.
std::string describe_live(const Ledger& ledger);

}  // namespace gputrain::profile
