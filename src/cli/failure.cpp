#include "cli/failure.h"

#include "base/text.h"
#include "device/device.h"
#include "device/memory.h"

#include <c10/util/Exception.h>

namespace gputrain::cli {

Error as_failure(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (device::is_out_of_memory(error)) {
    const at::Device device = device::choose_device("auto");
    return {ExitCode::kOutOfMemory,
            concat("out of memory: ", device::describe_out_of_memory(error, device),
                   " A smaller micro_batch_size with more gradient_accumulation_steps needs less.")};
  }
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return {ExitCode::kInternal,
          concat("internal error: ", from_torch ? from_torch->what_without_backtrace() : error.what(),
                 "\nThis is a fault in gputrain, not in the recipe.")};
}

}  // namespace gputrain::cli
