#include "device/allocator_settings.h"

#include "base/text.h"
#include "device/machine.h"

#include <c10/core/AllocatorConfig.h>

#include <cstdlib>

namespace gputrain::device {
namespace {

constexpr const char* kExpandable = "expandable_segments:True";

// The name of the variable that holds, "" where none does. LibTorch reads the first that is there.
std::string variable_in_force() {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (std::getenv(name) != nullptr) return name;
  }
  return "";
}

}  // namespace

std::vector<std::string> use_expandable_segments() {
  if (const std::string variable = variable_in_force(); !variable.empty()) {
    const std::string value = std::getenv(variable.c_str());
    if (value.find(kExpandable) != std::string::npos) return {};
    return {concat("inactive: cuda.allocator (", variable, " is \"", value,
                   "\" in the environment, which holds instead; unset it, or add ", kExpandable, ")")};
  }
  c10::CachingAllocator::setAllocatorSettings(kExpandable);
  if (!inspect_machine().is_wsl) return {};
  return {
      "cuda.allocator: expandable does not work with every driver under WSL; where CUDA fails, write "
      "default"};
}

}  // namespace gputrain::device
