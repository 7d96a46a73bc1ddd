#pragma once

#include "models/model.h"

// The rows of all.cpp.
namespace gputrain::models {

ModelComponent mlp();
ModelComponent convnet();
ModelComponent resnet18();
ModelComponent resnet34();
ModelComponent resnet50();
ModelComponent resnet101();
ModelComponent resnet152();
ModelComponent testing_tokens();

}  // namespace gputrain::models
