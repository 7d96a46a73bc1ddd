#include "cli/failure.h"

#include "base/text.h"
#include "device/device.h"
#include "device/memory.h"

namespace gputrain::cli {

Error as_failure(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (const auto refused = device::refused_operator(error)) return device::not_deterministic(*refused);
  if (device::is_out_of_memory(error)) {
    return {ExitCode::kOutOfMemory,
            "out of memory before training: the model, its optimizer state or the data kept on "
            "the device (data.pool) are too large"};
  }
  return {ExitCode::kInternal, concat("internal error: ", device::plain_text(error),
                                      "\nThis is a fault in gputrain, not in the recipe.")};
}

}  // namespace gputrain::cli
