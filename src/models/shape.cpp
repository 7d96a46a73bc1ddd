#include "models/shape.h"

#include "base/error.h"

namespace gputrain::models {

void describe_shape(recipe::Visitor& v, ShapeOptions& o) {
  v.integer("num_classes", o.num_classes, {2, 1e6}, "classes", "outputs of the last layer; auto: the data's");
  v.integer("in_channels", o.in_channels, {1, 4096}, "channels", "channels of the images; auto: the data's");
}

ImageShape image_shape(const ModelContext& context) {
  const std::vector<std::int64_t>& shape = context.sample_shape;
  if (shape.size() == 3) return {shape[0], shape[1], shape[2]};
  throw SettingError("model.name",
                     "reads images, the data has sequences of tokens; expected data of images, or "
                     "a model that reads tokens");
}

std::int64_t output_classes(const ShapeOptions& options, const ModelContext& context) {
  const std::int64_t channels = image_shape(context).channels;
  if (options.in_channels && *options.in_channels != channels) {
    throw SettingError("model.in_channels", concat("is ", *options.in_channels, ", the data has ", channels,
                                                   "; write auto or ", channels));
  }
  if (options.num_classes && *options.num_classes < context.num_classes) {
    throw SettingError("model.num_classes",
                       concat("is ", *options.num_classes, ", the data has labels up to ",
                              context.num_classes - 1, "; write auto or at least ", context.num_classes));
  }
  return options.num_classes.value_or(context.num_classes);
}

}  // namespace gputrain::models
