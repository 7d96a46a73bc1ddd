#pragma once

#include "nn/init.h"
#include "recipe/component.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gputrain::nn {
class Module;
}  // namespace gputrain::nn

namespace gputrain::models {

// What the data asks of a model.
struct ModelContext {
  std::vector<std::int64_t> sample_shape;  // images: [channels, height, width]; tokens: [positions]
  std::int64_t num_classes = 0;            // and of tokens
  nn::Init init;
};

// Images [batch, channels, height, width] -> logits [batch, classes], or tokens [batch, positions], int64 ->
// logits [batch, positions, classes]. Files that only name models do without nn/module.h.
using Model = std::unique_ptr<nn::Module>;
using ModelComponent = recipe::Component<Model, const ModelContext&>;

// Every model that a recipe can name. Adding one: a file with its options and build function,
// its declaration in components.h and its row in all.cpp.
const std::vector<ModelComponent>& all_models();

}  // namespace gputrain::models
