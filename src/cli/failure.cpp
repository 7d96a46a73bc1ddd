#include "cli/failure.h"

#include "base/text.h"
#include "device/memory.h"

#include <c10/util/Exception.h>

namespace gputrain::cli {

Error as_failure(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (device::is_out_of_memory(error)) {
    return {ExitCode::kOutOfMemory,
            "out of memory before training: the model, its optimizer state or the data kept on "
            "the device (data.pool) are too large"};
  }
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return {ExitCode::kInternal,
          concat("internal error: ", from_torch ? from_torch->what_without_backtrace() : error.what(),
                 "\nThis is a fault in gputrain, not in the recipe.")};
}

}  // namespace gputrain::cli
