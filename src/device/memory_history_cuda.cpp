#include "device/memory_history.h"

#include <c10/util/Exception.h>
#include <torch/csrc/cuda/memory_snapshot.h>

#include <cstddef>
#include <cstdlib>
#include <optional>

namespace gputrain::device {
namespace {

constexpr std::size_t kMostEntries = 100'000;

void record(const std::string& stacks) {
  const std::optional<std::string> all = "all";
  torch::cuda::_record_memory_history(all, all, stacks, kMostEntries);
}

}  // namespace

// Stacks of C++ ("all"): there is no Python whose stack could be shown. Their names come from the symbols
// that the libraries export; addr2line, LibTorch's own choice, reads debug information that they do not have,
// for minutes.
void record_memory_history() {
  ::setenv("TORCH_SYMBOLIZE_MODE", "dladdr", /*overwrite=*/0);
  try {
    record("all");
  } catch (const c10::Error&) {  // LibTorch cannot walk stacks on every processor
    record("python");
  }
}

std::string memory_snapshot() {
  return torch::cuda::_memory_snapshot_pickled();
}

}  // namespace gputrain::device
