#pragma once

#include "models/model.h"

namespace gputrain::models {

ModelComponent convnet();

}  // namespace gputrain::models
