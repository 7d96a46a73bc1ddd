#pragma once

#include "recipe/recipe.h"

#include <filesystem>

namespace gputrain::nn {
class Module;
}  // namespace gputrain::nn

namespace gputrain::run {

inline constexpr const char* kWeightsFile = "model.safetensors";

// Throws Error(kFileSystem) when there is no room for the weights where `folder` is or will be.
void check_space(const nn::Module& model, const std::filesystem::path& folder);

// Throws SettingError for a trace that would take the place of a file of the run, or of one elsewhere.
void check_trace(const recipe::Logging& logging, const std::filesystem::path& folder);

}  // namespace gputrain::run
