#pragma once

#include "base/error.h"

#include <iostream>
#include <string>

namespace gputrain::run {

// What a script may want goes there. Throws Error(kFileSystem) when it cannot be written.
inline void to_stdout(const std::string& text) {
  if (!(std::cout << text << std::flush)) {
    throw Error(ExitCode::kFileSystem, "standard output cannot be written");
  }
}

}  // namespace gputrain::run
