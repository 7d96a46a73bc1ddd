// libFuzzer target over reading, overriding and binding: no input may crash, hang or throw.
//   clang++ -std=c++20 -fsanitize=fuzzer,address,undefined -Isrc tests/recipe/fuzz_read.cpp src/recipe/*.cpp
//   \
//     src/base/*.cpp -lyaml-cpp -o fuzz_read && ./fuzz_read -timeout=1 configs
#include "recipe/keys.h"
#include "recipe/load.h"
#include "recipe/overrides.h"
#include "recipe/read.h"

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace recipe = gputrain::recipe;
  const std::string text(reinterpret_cast<const char*>(data), size);
  recipe::Document document = recipe::read_text(text, "fuzz.yaml");
  std::vector<std::string> notices;
  const std::vector<recipe::Key> known = {{"optimizer", true, "sgd"}};
  recipe::apply_overrides(document.root, {text, "optimizer.name=" + text}, known, document.problems, notices);
  recipe::Recipe bound;
  recipe::bind_recipe(document.root, bound);
  recipe::text_of(document.problems);
  return 0;
}
