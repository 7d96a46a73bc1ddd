#include "data/synthetic.h"

#include "base/error.h"
#include "base/text.h"
#include "data/components.h"
#include "data/image_store.h"
#include "device/current_stream.h"
#include "kernels/image_batch.h"
#include "kernels/random_math.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

namespace gputrain::data {
namespace {

// Keep the random numbers apart from those of other uses of the same seed.
constexpr std::uint64_t kPixelsPurpose = 0x706978656C73ull;  // "pixels"
constexpr std::uint64_t kLabelsPurpose = 0x6C6162656C73ull;  // "labels"

constexpr double kMostPoolBytes = 1e15;

// Mean and standard deviation of a uniformly random byte / 255.
constexpr double kMean = 0.5;
constexpr double kStd = 0.28980;

enum class Part : std::uint64_t { kTrain = 0, kValidation = 1 };

void check(const SyntheticOptions& options) {
  if (options.shape.size() != 3) {
    throw SettingError("data.shape", concat("has ", options.shape.size(),
                                            " values; expected three: channels, height, width"));
  }
  double bytes = static_cast<double>(options.pool);
  for (const std::int64_t size : options.shape) bytes *= static_cast<double>(size);
  if (bytes > kMostPoolBytes) {
    throw SettingError("data.pool", concat("of ", options.pool, " images needs ", bytes,
                                           " bytes on the device; lower data.pool or data.shape"));
  }
}

at::Tensor random_images(const SyntheticOptions& options, std::int64_t count, Part part,
                         const DataContext& context) {
  const c10::DeviceGuard guard(context.device);
  at::Tensor images = at::empty({count, options.shape[1], options.shape[2], options.shape[0]},
                                at::TensorOptions(context.device).dtype(at::kByte));
  const std::uint64_t seed =
      kernels::random_bits(context.seed ^ kPixelsPurpose, static_cast<std::uint64_t>(part));
  auto* bytes = images.mutable_data_ptr<std::uint8_t>();
  if (images.is_cuda()) {
    kernels::fill_random_cuda(bytes, images.numel(), seed, device::current_stream(images.device()));
  } else {
    kernels::fill_random_cpu(bytes, images.numel(), seed);
  }
  return images;
}

at::Tensor random_labels(const SyntheticOptions& options, std::int64_t count, Part part,
                         const DataContext& context) {
  const std::uint64_t seed =
      kernels::random_bits(context.seed ^ kLabelsPurpose, static_cast<std::uint64_t>(part));
  at::Tensor labels = at::empty({count}, at::TensorOptions(at::kLong));
  auto* to = labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t image = 0; image < count; ++image) {
    const std::uint64_t bits = kernels::random_bits(seed, static_cast<std::uint64_t>(image));
    to[image] = static_cast<std::int64_t>(
        kernels::random_below(bits, static_cast<std::uint64_t>(options.num_classes)));
  }
  return labels.to(context.device);
}

std::unique_ptr<Split> make_split(const SyntheticOptions& options, std::int64_t samples, Part part,
                                  const DataContext& context) {
  const std::int64_t images = std::min(options.pool, samples);
  const auto channels = static_cast<std::size_t>(options.shape[0]);
  const std::vector<double> mean(channels, kMean);
  const std::vector<double> std(channels, kStd);
  return std::make_unique<ImageStore>(random_images(options, images, part, context),
                                      random_labels(options, images, part, context), normalisation(mean, std),
                                      samples, context.channels_last);
}

}  // namespace

void describe(recipe::Visitor& v, SyntheticOptions& o) {
  v.integers("shape", o.shape, {1, 1e6}, "elements", "channels, height and width of an image");
  v.integer("num_classes", o.num_classes, {2, 1e9}, "classes", "labels are 0 to num_classes - 1, at random");
  v.integer("samples", o.samples, {1, 1e9}, "samples", "length of an epoch");
  v.integer("validation_samples", o.validation_samples, {0, 1e9}, "samples",
            "samples of a validation; 0: no validation");
  v.integer("pool", o.pool, {1, 1e9}, "images",
            "different images kept on the device; sample i shows image i modulo pool");
}

DataSet build_synthetic(const SyntheticOptions& options, const DataContext& context) {
  check(options);
  DataSet set;
  set.sample_shape = options.shape;
  set.num_classes = options.num_classes;
  set.train = make_split(options, options.samples, Part::kTrain, context);
  if (options.validation_samples > 0) {
    set.validation = make_split(options, options.validation_samples, Part::kValidation, context);
  }
  return set;
}

DataComponent synthetic() {
  return recipe::component("synthetic",
                           "random images made on the device, to measure training without a data set",
                           &build_synthetic);
}

}  // namespace gputrain::data
