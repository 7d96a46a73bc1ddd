#include "kernels/image_batch.h"

#include "kernels/image_batch_math.h"

namespace gputrain::kernels {
namespace {

template <class Label>
void gather_labels(const Label* labels, const std::int64_t* ids, std::int64_t count, std::int64_t* out) {
  for (std::int64_t n = 0; n < count; ++n) out[n] = static_cast<std::int64_t>(labels[ids[n]]);
}

}  // namespace

void gather_images_cpu(const ImageGather& gather) {
  const std::int64_t elements = gather.pixels * gather.channels;
  for (std::int64_t n = 0; n < gather.count; ++n) {
    const std::uint8_t* image = gather.images + gather.ids[n] * elements;
    float* out = gather.out + n * elements;
    for (std::int64_t c = 0; c < gather.channels; ++c) {
      const float scale = gather.scale[c];
      const float shift = gather.shift[c];
      for (std::int64_t i = c; i < elements; i += gather.channels)
        out[i] = normalised(image[i], scale, shift);
    }
  }
}

void gather_labels_cpu(const std::uint8_t* labels, const std::int64_t* ids, std::int64_t count,
                       std::int64_t* out) {
  gather_labels(labels, ids, count, out);
}

void gather_labels_cpu(const std::int64_t* labels, const std::int64_t* ids, std::int64_t count,
                       std::int64_t* out) {
  gather_labels(labels, ids, count, out);
}

void fill_random_cpu(std::uint8_t* out, std::int64_t count, std::uint64_t seed) {
  for (std::int64_t first = 0; first < count; first += 8) {
    const std::uint64_t word = random_bits(seed, static_cast<std::uint64_t>(first / 8));
    for (std::int64_t i = first; i < count && i < first + 8; ++i) out[i] = random_byte(word, i);
  }
}

}  // namespace gputrain::kernels
