#include "data/idx.h"

#include "base/error.h"
#include "idx_files.h"
#include "support/catch.h"

#include <cstdint>
#include <filesystem>
#include <string>

using namespace gputrain;
using namespace gputrain::data;
using namespace gputrain::test;

namespace {

// The text of the data error that `action` throws.
template <class Action>
std::string data_error(Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kData);
    return error.what();
  }
  FAIL("no error");
  return {};
}

std::string images_error(const std::string& path) {
  return data_error([&] { read_idx_images(path); });
}

std::string labels_error(const std::string& path) {
  return data_error([&] { read_idx_labels(path); });
}

const Bytes kPixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

}  // namespace

TEST_CASE("idx: images are read with their sizes, plain and compressed, whatever the name", "[data]") {
  const TempFolder folder;
  const Bytes file = idx_images(2, 2, 3, kPixels);
  for (const std::string& path : {folder.write("plain", file), folder.write("packed.gz", gzip(file)),
                                  folder.write("misnamed", gzip(file))}) {
    INFO(path);
    const IdxImages images = read_idx_images(path);
    REQUIRE(images.count == 2);
    REQUIRE(images.height == 2);
    REQUIRE(images.width == 3);
    REQUIRE(images.channels == 1);
    REQUIRE(images.pixels == kPixels);
  }
}

TEST_CASE("idx: four dimensions are images with the channels last", "[data]") {
  const TempFolder folder;
  const IdxImages images = read_idx_images(folder.write("rgb", idx_bytes(0x00000804, {1, 2, 2, 3}, kPixels)));
  REQUIRE(images.count == 1);
  REQUIRE(images.height == 2);
  REQUIRE(images.width == 2);
  REQUIRE(images.channels == 3);
  REQUIRE(images.pixels == kPixels);
}

TEST_CASE("idx: labels are read, plain and compressed", "[data]") {
  const TempFolder folder;
  const Bytes labels = {3, 0, 255};
  REQUIRE(read_idx_labels(folder.write("plain", idx_labels(labels))) == labels);
  REQUIRE(read_idx_labels(folder.write("packed.gz", gzip(idx_labels(labels)))) == labels);
}

TEST_CASE("idx: a file larger than one part of a read arrives whole", "[data]") {
  const TempFolder folder;
  Bytes pixels(3'500'000);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 31 + (i >> 8));
  const Bytes file = idx_images(3500, 10, 100, pixels);
  REQUIRE((read_idx_images(folder.write("plain", file)).pixels == pixels));
  REQUIRE((read_idx_images(folder.write("packed", gzip(file))).pixels == pixels));
}

TEST_CASE("idx: a missing file and a folder in its place are told apart", "[data]") {
  const TempFolder folder;
  REQUIRE(images_error(folder.path("none")) ==
          folder.path("none") + ": does not exist; expected an IDX file");
  REQUIRE(labels_error(folder.path()) == folder.path() + ": is a folder; expected an IDX file");
}

TEST_CASE("idx: a truncated file is named with the bytes expected and found", "[data]") {
  const TempFolder folder;
  const std::string path = folder.write("images", without_last(idx_images(2, 2, 3, kPixels), 1));
  REQUIRE(images_error(path) ==
          path + ": is truncated: its header says 2x2x3 = 12 bytes after the header, found 11");
}

TEST_CASE("idx: a file cut anywhere is an error, plain or compressed", "[data]") {
  const TempFolder folder;
  const Bytes plain = idx_images(2, 2, 3, kPixels);
  const Bytes packed = gzip(plain);
  for (std::size_t cut = 1; cut <= plain.size(); ++cut) {
    INFO("plain, " << cut << " bytes cut off");
    REQUIRE_FALSE(images_error(folder.write("plain", without_last(plain, cut))).empty());
  }
  for (std::size_t cut = 1; cut <= packed.size(); ++cut) {
    INFO("compressed, " << cut << " bytes cut off");
    REQUIRE_FALSE(images_error(folder.write("packed", without_last(packed, cut))).empty());
  }
}

TEST_CASE("idx: a truncated compressed file is called truncated", "[data]") {
  const TempFolder folder;
  const Bytes packed = gzip(idx_images(2, 2, 3, kPixels));
  const std::string path = folder.write("packed.gz", without_last(packed, 5));
  REQUIRE(images_error(path) == path + ": ends in the middle of its compressed data (" +
                                    std::to_string(packed.size() - 5) +
                                    " bytes); it is truncated, fetch it again");
}

TEST_CASE("idx: a compressed file with a wrong checksum is called damaged", "[data]") {
  const TempFolder folder;
  Bytes packed = gzip(idx_images(2, 2, 3, kPixels));
  packed[packed.size() - 8] ^= 1;
  REQUIRE_THAT(images_error(folder.write("packed.gz", packed)),
               ContainsSubstring("has damaged compressed data"));
}

TEST_CASE("idx: an empty file and one that ends in its header are told", "[data]") {
  const TempFolder folder;
  const std::string empty = folder.write("empty", Bytes{});
  REQUIRE(images_error(empty) == empty + ": ends inside its header; it is truncated or no IDX file");
  REQUIRE(labels_error(folder.write("short", Bytes{0, 0, 8, 1, 0})) ==
          folder.path("short") + ": ends inside its header; it is truncated or no IDX file");
}

TEST_CASE("idx: bytes behind the last image are an error", "[data]") {
  const TempFolder folder;
  Bytes file = idx_images(2, 2, 3, kPixels);
  file.push_back(0);
  const std::string path = folder.write("images", file);
  REQUIRE(images_error(path) ==
          path + ": holds more bytes than its header says (2x2x3 = 12 after the header)");
}

TEST_CASE("idx: swapped files and other files are told by their magic number", "[data]") {
  const TempFolder folder;
  const std::string labels = folder.write("labels", idx_labels({1, 2}));
  REQUIRE(images_error(labels) ==
          labels +
              ": has magic number 0x00000801 (labels); expected 0x00000803 (images) or 0x00000804 (images, "
              "channels last); were the files of images and labels swapped?");
  const std::string images = folder.write("images", idx_images(1, 1, 1, {0}));
  REQUIRE(
      labels_error(images) ==
      images +
          ": has magic number 0x00000803 (images); expected 0x00000801 (labels); were the files of images "
          "and labels swapped?");
  REQUIRE_THAT(images_error(folder.write("floats", idx_bytes(0x00000D03, {1, 1, 1}, {0, 0, 0, 0}))),
               ContainsSubstring("0x00000D03 (elements that are not unsigned bytes); expected 0x00000803"));
  REQUIRE_THAT(images_error(folder.write("png", "\x89PNG\r\n")), ContainsSubstring("0x89504E47; expected"));
}

TEST_CASE("idx: no images, no labels and images of size 0 are errors", "[data]") {
  const TempFolder folder;
  const std::string images = folder.write("images", idx_images(0, 28, 28, {}));
  REQUIRE(images_error(images) == images + ": has no images; expected at least one");
  const std::string labels = folder.write("labels", idx_labels({}));
  REQUIRE(labels_error(labels) == labels + ": has no labels; expected at least one");
  const std::string flat = folder.write("flat", idx_images(2, 0, 28, {}));
  REQUIRE(images_error(flat) == flat + ": has images of size 0: 2x0x28");
}

TEST_CASE("idx: sizes that no file of this length holds are refused before memory is taken", "[data]") {
  const TempFolder folder;
  const std::uint32_t most = 0xFFFFFFFF;
  const Bytes huge = idx_images(most, most, 2, kPixels);
  REQUIRE_THAT(
      images_error(folder.write("plain", huge)),
      ContainsSubstring("4294967295x4294967295x2 = 18446744073709551615 bytes after the header, found at "
                        "most 28"));
  REQUIRE_THAT(images_error(folder.write("packed", gzip(huge))), ContainsSubstring("is truncated"));
  // 2^32 bytes: far fewer than a product that overflows, far more than the file.
  REQUIRE_THAT(images_error(folder.write("large", idx_images(1u << 16, 1u << 8, 1u << 8, kPixels))),
               ContainsSubstring("= 4294967296 bytes after the header, found at most 28"));
}

TEST_CASE("idx: a product of sizes that wraps around to the file's length is refused", "[data]") {
  const TempFolder folder;
  // 2^31 * 2^31 * 4 = 2^64, which is 0 in 64 bits.
  const Bytes wrapping = idx_images(1u << 31, 1u << 31, 4, {});
  REQUIRE_THAT(images_error(folder.write("images", wrapping)), ContainsSubstring("is truncated"));
}

TEST_CASE("idx: a label out of range is named with its record and byte", "[data]") {
  check_labels({0, 9, 3}, 10, "labels", "data.num_classes is 10");
  REQUIRE(data_error([] {
            check_labels({0, 9, 10, 12}, 10, "labels", "data.num_classes is 10");
          }) ==
          "labels: label of record 2 (counted from 0, byte 10) is 10; expected 0 to 9, since "
          "data.num_classes is 10");
}

TEST_CASE("plain_or_gzip: takes the file that is there", "[data]") {
  const TempFolder folder;
  folder.write("a", "x");
  folder.write("b.gz", "x");
  folder.write("c", "x");
  folder.write("c.gz", "x");
  REQUIRE(plain_or_gzip(folder.path("a")) == folder.path("a"));
  REQUIRE(plain_or_gzip(folder.path("a.gz")) == folder.path("a"));
  REQUIRE(plain_or_gzip(folder.path("b")) == folder.path("b.gz"));
  REQUIRE(plain_or_gzip(folder.path("c")) == folder.path("c"));
  REQUIRE(plain_or_gzip(folder.path("c.gz")) == folder.path("c.gz"));
  REQUIRE(plain_or_gzip(folder.path("none")) == folder.path("none"));
}
