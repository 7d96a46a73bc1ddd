#include "data/idx_images.h"

#include "base/error.h"
#include "idx_files.h"
#include "support/catch.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

using namespace gputrain;
using namespace gputrain::data;
using namespace gputrain::test;

namespace {

const DataContext kCpu{at::Device(at::kCPU), 1};

// Three training images of 1x2 pixels with labels 0, 2, 1, and two for validation with labels 1, 2.
IdxOptions small_files(const TempFolder& folder) {
  IdxOptions options;
  options.train_images = folder.write("train-images", idx_images(3, 1, 2, {0, 255, 51, 102, 153, 204}));
  options.train_labels = folder.write("train-labels", idx_labels({0, 2, 1}));
  options.validation_images = folder.write("val-images", idx_images(2, 1, 2, {255, 255, 0, 51}));
  options.validation_labels = folder.write("val-labels", idx_labels({1, 2}));
  return options;
}

std::string error_of(const IdxOptions& options, ExitCode code) {
  try {
    build_idx(options, kCpu);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("no error");
  return {};
}

}  // namespace

TEST_CASE("idx data set: has the shape, classes and samples of its files", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  options.mean = {{0.5}};
  options.std = {{0.25}};
  const DataSet set = build_idx(options, kCpu);
  REQUIRE(set.sample_shape == std::vector<std::int64_t>{1, 1, 2});
  REQUIRE(set.num_classes == 3);
  REQUIRE(set.unit == "img");
  REQUIRE(set.notices.empty());
  REQUIRE(set.train->size() == 3);
  REQUIRE(set.validation->size() == 2);
  const nn::Batch batch = set.train->batch({1, 0});
  const float* pixels = batch.input.const_data_ptr<float>();
  const std::vector<float> expected = {-1.2f, -0.4f, -2, 2};  // (0.2 - 0.5) / 0.25 ...
  for (int i = 0; i < 4; ++i) REQUIRE(pixels[i] == Approx(expected[i]));
  REQUIRE(batch.target[0].item<std::int64_t>() == 2);
  REQUIRE(batch.target[1].item<std::int64_t>() == 0);
  REQUIRE(set.validation->batch({1}).target[0].item<std::int64_t>() == 2);
}

TEST_CASE("idx data set: without validation files there is no validation split", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  options.validation_images.reset();
  options.validation_labels.reset();
  REQUIRE(build_idx(options, kCpu).validation == nullptr);
}

TEST_CASE("idx data set: mean and std are found over the training images and told", "[data]") {
  const TempFolder folder;
  const DataSet set = build_idx(small_files(folder), kCpu);
  REQUIRE(set.notices.size() == 1);
  // 0, 1, 0.2, 0.4, 0.6, 0.8: mean 0.5, variance 0.7 / 6
  REQUIRE(set.notices[0] ==
          "images are normalised with mean 0.5 and std 0.3416 (both found over 3 training images)");
  const double std = std::sqrt(0.7 / 6);
  const nn::Batch batch = set.validation->batch({0, 1});
  REQUIRE(batch.input[0][0][0][0].item<float>() == Approx(0.5 / std));
  REQUIRE(batch.input[1][0][0][1].item<float>() == Approx(-0.3 / std));
}

TEST_CASE("channel_statistics: each channel has its own; a constant one is only shifted", "[data]") {
  IdxImages images;
  images.count = 2;
  images.height = images.width = 1;
  images.channels = 3;
  images.pixels = {0, 255, 51, 255, 255, 102};
  const ChannelStatistics found = channel_statistics(images);
  REQUIRE(found.mean[0] == Approx(0.5));
  REQUIRE(found.std[0] == Approx(0.5));
  REQUIRE(found.mean[1] == Approx(1));
  REQUIRE(found.std[1] == 1);
  REQUIRE(found.mean[2] == Approx(0.3));
  REQUIRE(found.std[2] == Approx(0.1));
}

TEST_CASE("idx data set: files with and without .gz are both found", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  std::filesystem::remove(*options.train_images);
  folder.write("train-images.gz", gzip(idx_images(3, 1, 2, {1, 2, 3, 4, 5, 6})));
  REQUIRE(build_idx(options, kCpu).train->size() == 3);
}

TEST_CASE("idx data set: a count of labels that differs from the images is an error", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  options.train_labels = folder.write("two", idx_labels({0, 1}));
  REQUIRE(error_of(options, ExitCode::kData) == folder.path("two") + ": has 2 labels, but " +
                                                    folder.path("train-images") +
                                                    " has 3 images; expected one label per image");
}

TEST_CASE("idx data set: a label out of range names its file and record", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  options.num_classes = 2;
  REQUIRE(
      error_of(options, ExitCode::kData) ==
      folder.path("train-labels") +
          ": label of record 1 (counted from 0, byte 9) is 2; expected 0 to 1, since data.num_classes is 2");
  options.num_classes = std::nullopt;
  options.validation_labels = folder.write("high", idx_labels({1, 3}));
  REQUIRE(
      error_of(options, ExitCode::kData) ==
      folder.path("high") +
          ": label of record 1 (counted from 0, byte 9) is 3; expected 0 to 2, since the largest label of " +
          folder.path("train-labels") + " is 2 and data.num_classes is auto");
}

TEST_CASE("idx data set: labels of one class alone are refused, unless more classes are named", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  options.train_labels = folder.write("zeros", idx_labels({0, 0, 0}));
  CHECK(error_of(options, ExitCode::kData) ==
        folder.path("zeros") +
            ": every label is 0; training needs at least 2 classes; is this the right file, or should "
            "data.num_classes be given?");
  options.num_classes = 3;
  CHECK(build_idx(options, kCpu).num_classes == 3);
}

TEST_CASE("idx data set: more classes than labels show is allowed", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  options.num_classes = 10;
  REQUIRE(build_idx(options, kCpu).num_classes == 10);
}

TEST_CASE("idx data set: validation images of another size are an error", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  options.validation_images = folder.write("tall", idx_images(2, 2, 1, {1, 2, 3, 4}));
  REQUIRE(error_of(options, ExitCode::kData) ==
          folder.path("tall") + ": its images are 2x1 with 1 channel; expected 1x2 with 1 channel, as in " +
              folder.path("train-images"));
}

TEST_CASE("idx data set: options that are missing or do not fit are named", "[data]") {
  const TempFolder folder;
  IdxOptions options = small_files(folder);
  options.mean = {{0.5, 0.5, 0.5}};
  REQUIRE(error_of(options, ExitCode::kUsage) ==
          "data.mean has 3 values; expected 1, one per channel of " + folder.path("train-images"));
  options.validation_labels = std::nullopt;
  REQUIRE(error_of(options, ExitCode::kUsage) ==
          "data.validation_labels is not given; expected the path of an IDX file");
  REQUIRE(error_of({}, ExitCode::kUsage) ==
          "data.train_images is not given; expected the path of an IDX file");
}

TEST_CASE("fashion_mnist: a folder that is not there says what to install", "[data]") {
  REQUIRE_THROWS_WITH(
      fashion_mnist_files({}, "/nowhere/fashion-mnist"),
      "data.path is not given and /nowhere/fashion-mnist does not exist; install Debian's package (apt "
      "install "
      "dataset-fashion-mnist) or give data.path, a folder with the four IDX files of Fashion-MNIST");
}

TEST_CASE("fashion_mnist: a path that is no folder or lacks a file is named", "[data]") {
  const TempFolder folder;
  FashionMnistOptions options;
  options.path = folder.path("none");
  REQUIRE_THROWS_WITH(fashion_mnist_files(options, "/nowhere"),
                      ContainsSubstring(folder.path("none") + ": does not exist; data.path is the folder"));
  options.path = folder.write("file", "x");
  REQUIRE_THROWS_WITH(fashion_mnist_files(options, "/nowhere"),
                      ContainsSubstring(folder.path("file") + ": is a file; data.path is the folder"));
  options.path = folder.path();
  folder.write("train-images-idx3-ubyte.gz", "x");
  REQUIRE_THROWS_WITH(fashion_mnist_files(options, "/nowhere"),
                      folder.path() +
                          ": has no train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz; expected "
                          "the four IDX files of Fashion-MNIST");
}

TEST_CASE("fashion_mnist: finds plain and compressed files in a folder", "[data]") {
  const TempFolder folder;
  folder.write("train-images-idx3-ubyte.gz", "x");
  folder.write("train-labels-idx1-ubyte", "x");
  folder.write("t10k-images-idx3-ubyte", "x");
  folder.write("t10k-labels-idx1-ubyte.gz", "x");
  const IdxOptions files = fashion_mnist_files({}, folder.path());
  REQUIRE(*files.train_images == folder.path("train-images-idx3-ubyte.gz"));
  REQUIRE(*files.train_labels == folder.path("train-labels-idx1-ubyte"));
  REQUIRE(*files.validation_images == folder.path("t10k-images-idx3-ubyte"));
  REQUIRE(*files.validation_labels == folder.path("t10k-labels-idx1-ubyte.gz"));
  REQUIRE(*files.num_classes == 10);
}

TEST_CASE("fashion_mnist: Debian's package is read whole", "[data]") {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GPUTRAIN_SKIP("needs Debian's package dataset-fashion-mnist");
  const DataSet set = build_idx(fashion_mnist_files({}, folder), kCpu);
  REQUIRE(set.sample_shape == std::vector<std::int64_t>{1, 28, 28});
  REQUIRE(set.train->size() == 60000);
  REQUIRE(set.validation->size() == 10000);
  // The values that users of this data set know.
  REQUIRE(set.notices.at(0) ==
          "images are normalised with mean 0.286 and std 0.353 (both found over 60000 training images)");
  // The first labels: ankle boot, T-shirt, T-shirt, dress.
  const at::Tensor target = set.train->batch({0, 1, 2, 3}).target;
  const std::vector<std::int64_t> first = {9, 0, 0, 3};
  for (std::int64_t i = 0; i < 4; ++i)
    REQUIRE(target[i].item<std::int64_t>() == first[static_cast<std::size_t>(i)]);
}
