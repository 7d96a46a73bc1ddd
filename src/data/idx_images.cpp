#include "data/idx_images.h"

#include "base/error.h"
#include "base/text.h"
#include "data/components.h"
#include "data/image_store.h"
#include "data/labels.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

namespace gputrain::data {
namespace {

constexpr const char* kFashionMnistPackageFolder = "/usr/share/datasets/fashion-mnist";

// One split as read from its files.
struct IdxSplit {
  std::string images_path;
  std::string labels_path;
  IdxImages images;
  std::vector<std::uint8_t> labels;
};

void describe_normalisation(recipe::Visitor& v, std::optional<std::vector<double>>& mean,
                            std::optional<std::vector<double>>& std) {
  v.numbers("mean", mean, {0, 1}, "of 0 to 1",
            "taken off each pixel, one value per channel; auto: found over the training images");
  v.numbers("std", std, {0, 100, true}, "of 0 to 1",
            "what each pixel is divided by after that, one value per channel; auto: found over the training "
            "images");
}

const std::string& needed(const std::optional<std::string>& path, const char* key) {
  if (!path) throw SettingError(concat("data.", key), "is not given; expected the path of an IDX file");
  return *path;
}

IdxSplit read_split(const std::string& images_path, const std::string& labels_path) {
  IdxSplit split;
  split.images_path = plain_or_gzip(images_path);
  split.labels_path = plain_or_gzip(labels_path);
  split.labels = read_idx_labels(split.labels_path);
  split.images = read_idx_images(split.images_path);
  if (static_cast<std::int64_t>(split.labels.size()) != split.images.count) {
    throw Error(ExitCode::kData,
                concat(split.labels_path, ": has ", split.labels.size(), " labels, but ", split.images_path,
                       " has ", split.images.count, " images; expected one label per image"));
  }
  return split;
}

std::optional<IdxSplit> read_validation(const IdxOptions& options) {
  if (!options.validation_images && !options.validation_labels) return std::nullopt;
  const std::string& images = needed(options.validation_images, "validation_images");
  const std::string& labels = needed(options.validation_labels, "validation_labels");
  return read_split(images, labels);
}

std::vector<std::int64_t> sample_shape(const IdxImages& images) {
  return {images.channels, images.height, images.width};
}

std::string shape_text(const IdxImages& images) {
  return concat(images.height, "x", images.width, " with ", images.channels,
                images.channels == 1 ? " channel" : " channels");
}

void check_same_shape(const IdxSplit& train, const IdxSplit& validation) {
  if (sample_shape(train.images) == sample_shape(validation.images)) return;
  throw Error(ExitCode::kData,
              concat(validation.images_path, ": its images are ", shape_text(validation.images),
                     "; expected ", shape_text(train.images), ", as in ", train.images_path));
}

std::int64_t largest(const std::vector<std::uint8_t>& labels) {
  return *std::max_element(labels.begin(), labels.end());
}

// The number of classes, all labels checked against it.
std::int64_t checked_classes(const IdxOptions& options, const IdxSplit& train, const IdxSplit* validation) {
  const std::int64_t classes = options.num_classes.value_or(largest(train.labels) + 1);
  const std::string why = options.num_classes ? concat("data.num_classes is ", classes)
                                              : concat("the largest label of ", train.labels_path, " is ",
                                                       classes - 1, " and data.num_classes is auto");
  check_enough_classes(classes, train.labels_path);
  check_labels(train.labels, classes, train.labels_path, why);
  if (validation) check_labels(validation->labels, classes, validation->labels_path, why);
  return classes;
}

void check_channels(const std::optional<std::vector<double>>& values, const char* key,
                    const IdxSplit& train) {
  if (!values || static_cast<std::int64_t>(values->size()) == train.images.channels) return;
  throw SettingError(concat("data.", key),
                     concat("has ", values->size(), " values; expected ", train.images.channels,
                            ", one per channel of ", train.images_path));
}

std::string list_text(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(shortest(std::round(value * 1e4) / 1e4));
  return values.size() == 1 ? texts[0] : "[" + join(texts, ", ") + "]";
}

Normalisation chosen_normalisation(const IdxOptions& options, const IdxSplit& train,
                                   std::vector<std::string>& notices) {
  check_channels(options.mean, "mean", train);
  check_channels(options.std, "std", train);
  if (options.mean && options.std) return normalisation(*options.mean, *options.std);
  const ChannelStatistics found = channel_statistics(train.images);
  const std::vector<double>& mean = options.mean ? *options.mean : found.mean;
  const std::vector<double>& std = options.std ? *options.std : found.std;
  notices.push_back(concat("images are normalised with mean ", list_text(mean), " and std ", list_text(std),
                           " (",
                           options.mean  ? "std"
                           : options.std ? "mean"
                                         : "both",
                           " found over ", train.images.count, " training images)"));
  return normalisation(mean, std);
}

// The bytes as a tensor of this shape on the device; on the CPU they are not copied.
at::Tensor tensor_of(std::vector<std::uint8_t> bytes, const std::vector<std::int64_t>& shape,
                     at::Device device) {
  auto kept = std::make_shared<std::vector<std::uint8_t>>(std::move(bytes));
  const at::Tensor host = at::from_blob(
      kept->data(), shape, [kept](void*) {}, at::TensorOptions(at::kByte));
  return host.to(device);
}

std::unique_ptr<Split> make_split(IdxSplit split, const Normalisation& normalisation,
                                  const DataContext& context) {
  const IdxImages& images = split.images;
  const std::int64_t count = images.count;
  const std::vector<std::int64_t> shape = {count, images.height, images.width, images.channels};
  return std::make_unique<ImageStore>(tensor_of(std::move(split.images.pixels), shape, context.device),
                                      tensor_of(std::move(split.labels), {count}, context.device),
                                      normalisation, count, context.channels_last);
}

std::string found_file(const std::filesystem::path& folder, const char* name) {
  const std::string path = plain_or_gzip((folder / name).string());
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  throw Error(ExitCode::kData, concat(folder.string(), ": has no ", name, " or ", name,
                                      ".gz; expected the four IDX files of Fashion-MNIST"));
}

DataSet build_fashion_mnist(const FashionMnistOptions& options, const DataContext& context) {
  return build_idx(fashion_mnist_files(options, kFashionMnistPackageFolder), context);
}

}  // namespace

void describe(recipe::Visitor& v, IdxOptions& o) {
  v.path("train_images", o.train_images, "IDX file of the training images, plain or gzip");
  v.path("train_labels", o.train_labels, "IDX file of the training labels, plain or gzip");
  v.path("validation_images", o.validation_images, "IDX file of the validation images; null: no validation");
  v.path("validation_labels", o.validation_labels, "IDX file of the validation labels; null: no validation");
  v.integer("num_classes", o.num_classes, {2, 1e9}, "classes",
            "labels are 0 to num_classes - 1; auto: the largest training label + 1");
  describe_normalisation(v, o.mean, o.std);
}

void describe(recipe::Visitor& v, FashionMnistOptions& o) {
  v.path("path", o.path, "folder with the four IDX files; null: Debian's package dataset-fashion-mnist");
  describe_normalisation(v, o.mean, o.std);
}

DataSet build_idx(const IdxOptions& options, const DataContext& context) {
  const std::string& images = needed(options.train_images, "train_images");
  const std::string& labels = needed(options.train_labels, "train_labels");
  IdxSplit train = read_split(images, labels);
  std::optional<IdxSplit> validation = read_validation(options);
  if (validation) check_same_shape(train, *validation);

  DataSet set;
  set.sample_shape = sample_shape(train.images);
  set.num_classes = checked_classes(options, train, validation ? &*validation : nullptr);
  const Normalisation normalisation = chosen_normalisation(options, train, set.notices);
  set.train = make_split(std::move(train), normalisation, context);
  if (validation) set.validation = make_split(std::move(*validation), normalisation, context);
  return set;
}

IdxOptions fashion_mnist_files(const FashionMnistOptions& options, const std::string& package_folder) {
  const std::filesystem::path folder = options.path.value_or(package_folder);
  std::error_code ignored;
  if (!options.path && !std::filesystem::exists(folder, ignored)) {
    throw Error(
        ExitCode::kData,
        concat("data.path is not given and ", package_folder,
               " does not exist; install Debian's package (apt install dataset-fashion-mnist) or give "
               "data.path, a folder with the four IDX files of Fashion-MNIST"));
  }
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error(ExitCode::kData,
                concat(folder.string(), ": ",
                       std::filesystem::exists(folder, ignored) ? "is a file" : "does not exist",
                       "; data.path is the folder with the four IDX files of Fashion-MNIST"));
  }
  IdxOptions files;
  files.train_images = found_file(folder, "train-images-idx3-ubyte");
  files.train_labels = found_file(folder, "train-labels-idx1-ubyte");
  files.validation_images = found_file(folder, "t10k-images-idx3-ubyte");
  files.validation_labels = found_file(folder, "t10k-labels-idx1-ubyte");
  files.num_classes = 10;
  files.mean = options.mean;
  files.std = options.std;
  return files;
}

// Sums are exact: counts of the 256 values first.
ChannelStatistics channel_statistics(const IdxImages& images) {
  ChannelStatistics result;
  const auto channels = static_cast<std::size_t>(images.channels);
  const double pixels = static_cast<double>(images.pixels.size() / channels);
  for (std::size_t c = 0; c < channels; ++c) {
    std::array<std::uint64_t, 256> counts{};
    for (std::size_t i = c; i < images.pixels.size(); i += channels) ++counts[images.pixels[i]];
    double sum = 0;
    for (int value = 0; value < 256; ++value) sum += static_cast<double>(counts[value]) * value;
    const double mean = sum / pixels;
    double squares = 0;
    for (int value = 0; value < 256; ++value) {
      squares += static_cast<double>(counts[value]) * (value - mean) * (value - mean);
    }
    const double std = std::sqrt(squares / pixels);
    result.mean.push_back(mean / 255);
    result.std.push_back(std > 0 ? std / 255 : 1);
  }
  return result;
}

DataComponent fashion_mnist() {
  return recipe::component("fashion_mnist", "Fashion-MNIST: 70,000 grey images of clothes, 28x28, 10 classes",
                           &build_fashion_mnist);
}

DataComponent idx() {
  return recipe::component("idx", "images and labels in IDX files, the format of MNIST", &build_idx);
}

}  // namespace gputrain::data
