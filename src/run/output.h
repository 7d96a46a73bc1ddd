#pragma once

#include "recipe/recipe.h"

#include <cstdint>
#include <filesystem>

namespace gputrain::nn {
class Module;
}  // namespace gputrain::nn

namespace gputrain::run {

inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kAveragesFile = "model-ema.safetensors";  // same names, shapes and types
inline constexpr const char* kLedgerFile = "memory/ledger.json";
inline constexpr const char* kSnapshotFile = "memory/snapshot.pickle";

// What a run's weights take on disk, its averages (with ema.decay) included.
std::int64_t disk_bytes(const nn::Module& model, const recipe::Ema& ema);

// Throws Error(kFileSystem) when there is no room for them where `folder` is or will be.
void check_space(const nn::Module& model, const recipe::Ema& ema, const std::filesystem::path& folder);

// Throws SettingError for a trace that would take the place of a file of the run, or of one elsewhere.
void check_trace(const recipe::Logging& logging, const std::filesystem::path& folder);

}  // namespace gputrain::run
