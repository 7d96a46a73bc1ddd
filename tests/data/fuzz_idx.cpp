#include "base/error.h"
#include "data/idx.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

// Any bytes are an IDX file or a data error: no crash, and no more memory than a few times the input.

namespace {

class MemorySource : public gputrain::data::ByteSource {
 public:
  MemorySource(const std::uint8_t* bytes, std::size_t count) : bytes_(bytes), left_(count), count_(count) {}

  std::size_t read(std::uint8_t* into, std::size_t count) override {
    const std::size_t part = std::min(count, left_);
    std::copy_n(bytes_, part, into);
    bytes_ += part;
    left_ -= part;
    return part;
  }

  // As a compressed file would: more may come than is there.
  std::uint64_t most_bytes() const override { return std::uint64_t{count_} * 1032; }

 private:
  const std::uint8_t* bytes_;
  std::size_t left_;
  std::size_t count_;
};

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

void read_as_images(MemorySource source) {
  try {
    const auto images = gputrain::data::read_idx_images(source, "input");
    expect(images.count > 0 && images.height > 0 && images.width > 0 && images.channels > 0);
    const auto elements =
        static_cast<std::uint64_t>(images.count) * images.height * images.width * images.channels;
    expect(elements == images.pixels.size());
  } catch (const gputrain::Error& error) {
    expect(error.code() == gputrain::ExitCode::kData);
  }
}

void read_as_labels(MemorySource source) {
  try {
    expect(!gputrain::data::read_idx_labels(source, "input").empty());
  } catch (const gputrain::Error& error) {
    expect(error.code() == gputrain::ExitCode::kData);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  read_as_images({bytes, count});
  read_as_labels({bytes, count});
  return 0;
}
