#pragma once

#include "models/model.h"

#include <cstdint>
#include <optional>

namespace gputrain::models {

// Keys that every image classifier has: what it reads and how many classes it tells apart.
struct ShapeOptions {
  std::optional<std::int64_t> num_classes;  // absent: the data's
  std::optional<std::int64_t> in_channels;  // absent: the data's
};

void describe_shape(recipe::Visitor& v, ShapeOptions& o);

struct ImageShape {
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
};

// Throws SettingError when the data gives no images.
ImageShape image_shape(const ModelContext& context);

// Classes of the last layer. Throws Error(kUsage) when the data has more of them, or other channels than the
// recipe says.
std::int64_t output_classes(const ShapeOptions& options, const ModelContext& context);

}  // namespace gputrain::models
