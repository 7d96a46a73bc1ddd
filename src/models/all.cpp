#include "models/components.h"

namespace gputrain::models {

const std::vector<ModelComponent>& all_models() {
  static const std::vector<ModelComponent> models = {
      mlp(), convnet(), resnet18(), resnet34(), resnet50(), resnet101(), resnet152(), testing_tokens(),
  };
  return models;
}

}  // namespace gputrain::models
