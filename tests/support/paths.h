#pragma once

#include <cstdlib>
#include <string>

// Where the binary and the sources are: known from the build, and overruled by the environment where a test
// program was carried to another machine.
namespace gputrain::testing {

inline std::string binary_path() {
  const char* elsewhere = std::getenv("GPUTRAIN_BINARY");
  return elsewhere ? elsewhere : GPUTRAIN_BINARY_PATH;
}

inline std::string source_path() {
  const char* elsewhere = std::getenv("GPUTRAIN_SOURCE");
  return elsewhere ? elsewhere : GPUTRAIN_SOURCE_PATH;
}

}  // namespace gputrain::testing
