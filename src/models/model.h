#pragma once

#include "nn/init.h"
#include "nn/module.h"
#include "recipe/component.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gputrain::models {

// What the data asks of a model.
struct ModelContext {
  std::vector<std::int64_t> sample_shape;  // [channels, height, width]
  std::int64_t num_classes = 0;
  nn::Init init;
};

using Model = std::unique_ptr<nn::Module>;  // [batch, channels, height, width] -> logits [batch, classes]
using ModelComponent = recipe::Component<Model, const ModelContext&>;

// Every model that a recipe can name. Adding one: a file with its options and build function,
// its declaration in components.h and its row in all.cpp.
const std::vector<ModelComponent>& all_models();

}  // namespace gputrain::models
