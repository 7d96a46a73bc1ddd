#pragma once

#include "base/error.h"

#include <exception>

namespace gputrain::cli {

// What to tell the user about an exception that reached main, and the exit code: Error as it is, out of
// memory with what is known about it (kOutOfMemory), everything else as an internal error.
Error as_failure(const std::exception& error);

}  // namespace gputrain::cli
