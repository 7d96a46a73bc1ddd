#pragma once

#include "models/model.h"

namespace gputrain::models {

ModelComponent resnet18();
ModelComponent resnet34();
ModelComponent resnet50();
ModelComponent resnet101();
ModelComponent resnet152();

}  // namespace gputrain::models
