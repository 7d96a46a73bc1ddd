#pragma once

#include "models/model.h"

namespace gputrain::models {

ModelComponent mlp();

}  // namespace gputrain::models
