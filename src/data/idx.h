#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gputrain::data {

// Bytes in order, from a file or from memory.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads up to `count` bytes; fewer only at the end. Throws Error(kData) when the medium fails.
  virtual std::size_t read(std::uint8_t* into, std::size_t count) = 0;

  // No more bytes than this can come out, whatever a header claims.
  virtual std::uint64_t most_bytes() const = 0;
};

struct IdxImages {
  std::int64_t count = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::vector<std::uint8_t> pixels;  // [count, height, width, channels]
};

// IDX is the format of MNIST: magic number, sizes (32 bits, big-endian), bytes.
// Source: http://yann.lecun.com/exdb/mnist/. `name` is the file's name for messages.
// Throw Error(kData) for another magic number, a size of 0, fewer or more bytes than the header says. Memory
// is taken as bytes arrive, not as the header claims. Images: unsigned bytes in 3 dimensions [count, height,
// width], or in 4 with the channels last.
IdxImages read_idx_images(ByteSource& source, const std::string& name);
// Labels: unsigned bytes in 1 dimension.
std::vector<std::uint8_t> read_idx_labels(ByteSource& source, const std::string& name);

// The same from a file, plain or compressed with gzip, whatever its name says.
IdxImages read_idx_images(const std::string& path);
std::vector<std::uint8_t> read_idx_labels(const std::string& path);

// Throws Error(kData) that names the first label which is not below num_classes, its record and its byte.
// `why` says where num_classes comes from.
void check_labels(const std::vector<std::uint8_t>& labels, std::int64_t num_classes, const std::string& name,
                  const std::string& why);

// `path` when it exists, else the same name with or without `.gz` when that exists, else `path`.
std::string plain_or_gzip(const std::string& path);

}  // namespace gputrain::data
