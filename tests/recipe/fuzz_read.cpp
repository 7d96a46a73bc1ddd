// libFuzzer target over everything that happens to a recipe's text: no input may crash, hang or throw.
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -Isrc -Itests tests/recipe/fuzz_read.cpp
//     src/recipe/*.cpp src/base/*.cpp -lyaml-cpp -o fuzz_read
//   ./fuzz_read -timeout=1 -max_len=4096 new tests/recipe/corpus configs
#include "recipe/read_as_fuzzed.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gputrain::read_as_fuzzed(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
