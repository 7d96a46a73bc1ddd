#pragma once

#include "models/model.h"
#include "nn/module.h"
#include "support/settings.h"

namespace gputrain::models {

// The model of that name with these settings, built on the CPU.
inline Model tiny_model(const std::string& name, std::vector<std::int64_t> sample_shape, std::int64_t classes,
                        std::uint64_t seed,
                        const std::vector<std::pair<std::string, std::string>>& values = {}) {
  return bound(all_models(), name, values).build({std::move(sample_shape), classes, nn::init_on_cpu(seed)});
}

}  // namespace gputrain::models
