#pragma once

#include <algorithm>
#include <cstdint>

namespace gputrain::kernels {

inline constexpr int kBlockThreads = 256;
inline constexpr std::int64_t kMaxBlocks = 2147483647;  // of the x dimension, from compute capability 3.0 on

// How gather_images is cut: every block works on one slice of one image at a time, so that the division that
// finds the image is done once per block and not once per element.
struct GatherGrid {
  std::int64_t slices_per_image = 0;
  std::int64_t slices = 0;  // of all images; a block takes every blocks-th one
  std::int64_t blocks = 0;
};

// `elements` of an image, each thread working on `per_thread` of them. All arguments at least 1.
inline GatherGrid gather_grid(std::int64_t count, std::int64_t elements, std::int64_t per_thread) {
  const std::int64_t per_block = kBlockThreads * per_thread;
  GatherGrid grid;
  grid.slices_per_image = elements / per_block + (elements % per_block != 0);
  grid.slices = count * grid.slices_per_image;
  grid.blocks = std::min(grid.slices, kMaxBlocks);
  return grid;
}

// Blocks for a loop in which thread t works on items t, t + threads, t + 2 * threads ... of `items` (at least
// 1).
inline std::int64_t stride_blocks(std::int64_t items) {
  return std::min(items / kBlockThreads + (items % kBlockThreads != 0), kMaxBlocks);
}

// Whether `pointer` may be read or written `bytes` at a time.
inline bool is_aligned(const void* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

}  // namespace gputrain::kernels
