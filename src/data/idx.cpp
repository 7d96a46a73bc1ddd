#include "data/idx.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <zlib.h>

namespace gputrain::data {
namespace {

constexpr std::uint32_t kLabelsMagic = 0x00000801;
constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::uint32_t kColourImagesMagic = 0x00000804;
constexpr std::uint64_t kLabelsHeaderBytes = 8;

// Deflate's best: 258 bytes from 2 bits. Source: zlib's technical details, "maximum compression factor".
constexpr std::uint64_t kMostInflation = 1032;

[[noreturn]] void fail(const std::string& name, const std::string& text) {
  throw Error(ExitCode::kData, name + ": " + text);
}

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

// zlib's gzFile reads files that are not compressed as they are.
class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : path_(path), file_bytes_(checked_size(path)) {
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) fail(path_, concat("cannot be opened: ", std::strerror(errno)));
    gzbuffer(file_.get(), 1u << 17);
  }

  std::size_t read(std::uint8_t* into, std::size_t count) override {
    std::size_t done = 0;
    while (done < count) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(count - done, 1u << 30));
      const int got = gzread(file_.get(), into + done, part);
      if (got < 0) fail_reading();
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    if (done < count) check_end();
    return done;
  }

  std::uint64_t most_bytes() const override {
    return gzdirect(file_.get()) ? file_bytes_ : file_bytes_ * kMostInflation;
  }

 private:
  static std::uint64_t checked_size(const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) fail(path, "does not exist; expected an IDX file");
    if (std::filesystem::is_directory(status)) fail(path, "is a folder; expected an IDX file");
    const auto bytes = std::filesystem::file_size(path, error);
    if (error) fail(path, concat("cannot be read: ", error.message()));
    return bytes;
  }

  // A compressed file that was cut off ends early without an error from gzread.
  void check_end() {
    int code = Z_OK;
    gzerror(file_.get(), &code);
    if (code != Z_OK && code != Z_STREAM_END) fail_reading();
  }

  [[noreturn]] void fail_reading() {
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) fail(path_, concat("cannot be read: ", std::strerror(errno)));
    if (code == Z_BUF_ERROR) {
      fail(path_, concat("ends in the middle of its compressed data (", file_bytes_,
                         " bytes); it is truncated, fetch it again"));
    }
    fail(path_, concat("has damaged compressed data (", text, "); fetch it again"));
  }

  std::string path_;
  std::uint64_t file_bytes_;
  std::unique_ptr<gzFile_s, CloseGzip> file_;
};

std::string hex(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08X", value);
  return text;
}

std::uint32_t read_word(ByteSource& source, const std::string& name) {
  std::uint8_t bytes[4];
  const std::size_t got = source.read(bytes, 4);
  if (got < 4) fail(name, "ends inside its header; it is truncated or no IDX file");
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         bytes[3];
}

std::string meaning(std::uint32_t magic) {
  if (magic == kLabelsMagic) return " (labels)";
  if (magic == kImagesMagic || magic == kColourImagesMagic) return " (images)";
  if (magic >> 16 == 0 && (magic & 0xFF00) != 0x0800) return " (elements that are not unsigned bytes)";
  return "";
}

[[noreturn]] void fail_magic(std::uint32_t magic, const std::string& name, const std::string& expected) {
  std::string text = concat("has magic number ", hex(magic), meaning(magic), "; expected ", expected);
  if (magic == kLabelsMagic || magic == kImagesMagic || magic == kColourImagesMagic) {
    text += "; were the files of images and labels swapped?";
  }
  fail(name, text);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return join(sizes, "x");
}

// The product of the sizes, or 2^64 - 1 when it does not fit.
std::uint64_t element_count(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count)) return ~std::uint64_t{0};
  }
  return count;
}

// The sizes of the header, each at least 1.
std::vector<std::int64_t> read_shape(ByteSource& source, std::uint32_t dimensions, const std::string& name,
                                     const char* records) {
  std::vector<std::int64_t> shape;
  for (std::uint32_t d = 0; d < dimensions; ++d) shape.push_back(read_word(source, name));
  if (shape[0] == 0) fail(name, concat("has no ", records, "; expected at least one"));
  for (const std::int64_t size : shape) {
    if (size == 0) fail(name, concat("has ", records, " of size 0: ", shape_text(shape)));
  }
  return shape;
}

[[noreturn]] void fail_short(const std::string& name, const std::vector<std::int64_t>& shape,
                             const std::string& found) {
  fail(name, concat("is truncated: its header says ", shape_text(shape), " = ", element_count(shape),
                    " bytes after the header, found ", found));
}

std::vector<std::uint8_t> read_payload(ByteSource& source, const std::vector<std::int64_t>& shape,
                                       const std::string& name) {
  constexpr std::size_t kFirstPart = std::size_t{1} << 20;
  const std::uint64_t expected = element_count(shape);
  if (expected > source.most_bytes()) fail_short(name, shape, concat("at most ", source.most_bytes()));
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < expected) {
    const std::size_t before = bytes.size();
    const std::size_t part = std::min<std::uint64_t>(expected - before, std::max(before, kFirstPart));
    bytes.resize(before + part);
    const std::size_t got = source.read(bytes.data() + before, part);
    if (got < part) fail_short(name, shape, std::to_string(before + got));
  }
  std::uint8_t more = 0;
  if (source.read(&more, 1) != 0) {
    fail(name, concat("holds more bytes than its header says (", shape_text(shape), " = ", expected,
                      " after the header)"));
  }
  return bytes;
}

}  // namespace

IdxImages read_idx_images(ByteSource& source, const std::string& name) {
  const std::uint32_t magic = read_word(source, name);
  if (magic != kImagesMagic && magic != kColourImagesMagic) {
    fail_magic(
        magic, name,
        concat(hex(kImagesMagic), " (images) or ", hex(kColourImagesMagic), " (images, channels last)"));
  }
  const std::vector<std::int64_t> shape = read_shape(source, magic & 0xFF, name, "images");
  IdxImages images;
  images.count = shape[0];
  images.height = shape[1];
  images.width = shape[2];
  images.channels = shape.size() > 3 ? shape[3] : 1;
  images.pixels = read_payload(source, shape, name);
  return images;
}

std::vector<std::uint8_t> read_idx_labels(ByteSource& source, const std::string& name) {
  const std::uint32_t magic = read_word(source, name);
  if (magic != kLabelsMagic) fail_magic(magic, name, hex(kLabelsMagic) + " (labels)");
  return read_payload(source, read_shape(source, 1, name, "labels"), name);
}

IdxImages read_idx_images(const std::string& path) {
  FileSource source(path);
  return read_idx_images(source, path);
}

std::vector<std::uint8_t> read_idx_labels(const std::string& path) {
  FileSource source(path);
  return read_idx_labels(source, path);
}

void check_labels(const std::vector<std::uint8_t>& labels, std::int64_t num_classes, const std::string& name,
                  const std::string& why) {
  const auto wrong =
      std::find_if(labels.begin(), labels.end(), [&](std::uint8_t l) { return l >= num_classes; });
  if (wrong == labels.end()) return;
  const auto record = static_cast<std::uint64_t>(wrong - labels.begin());
  fail(name, concat("label of record ", record, " (counted from 0, byte ", kLabelsHeaderBytes + record,
                    ") is ", static_cast<int>(*wrong), "; expected 0 to ", num_classes - 1, ", since ", why));
}

std::string plain_or_gzip(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  const bool has_suffix = path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
  const std::string other = has_suffix ? path.substr(0, path.size() - 3) : path + ".gz";
  return std::filesystem::exists(other, ignored) ? other : path;
}

}  // namespace gputrain::data
