#pragma once

#include "support/temporary_folder.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>
#include <zlib.h>

namespace gputrain::test {

using Bytes = std::vector<std::uint8_t>;

// A temporary folder that tests of data write files into.
class TempFolder {
 public:
  std::string path(const std::string& name = {}) const {
    return name.empty() ? folder_.path().string() : (folder_ / name).string();
  }

  std::string write(const std::string& name, const Bytes& bytes) const {
    std::ofstream out(path(name), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }
  std::string write(const std::string& name, const std::string& text) const {
    return write(name, Bytes(text.begin(), text.end()));
  }

 private:
  testing::TemporaryFolder folder_;
};

// An IDX file: magic number, sizes, content.
inline Bytes idx_bytes(std::uint32_t magic, const std::vector<std::uint32_t>& sizes, const Bytes& content) {
  Bytes bytes;
  std::vector<std::uint32_t> words = {magic};
  words.insert(words.end(), sizes.begin(), sizes.end());
  for (const std::uint32_t word : words) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(word >> shift));
  }
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

inline Bytes idx_labels(const Bytes& labels) {
  return idx_bytes(0x00000801, {static_cast<std::uint32_t>(labels.size())}, labels);
}

inline Bytes idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width, const Bytes& pixels) {
  return idx_bytes(0x00000803, {count, height, width}, pixels);
}

inline Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  constexpr int kGzipFormat = 16 + MAX_WBITS;
  if (deflateInit2(&stream, 9, Z_DEFLATED, kGzipFormat, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// `bytes` without its last `count`.
inline Bytes without_last(Bytes bytes, std::size_t count) {
  bytes.resize(bytes.size() - count);
  return bytes;
}

}  // namespace gputrain::test
