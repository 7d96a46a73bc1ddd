#include "recipe/batch_size.h"

#include "recipe/load.h"
#include "recipe/read.h"
#include "support/catch.h"

using namespace gputrain::recipe;

namespace {

struct Derived {
  Recipe recipe;
  std::string problems;
  std::vector<std::int64_t> sizes() const {
    return {recipe.micro_batch_size.value(), recipe.gradient_accumulation_steps.value(),
            recipe.global_batch_size.value()};
  }
};

Derived derive(const std::string& text) {
  const Document document = read_text("max_steps: 1\n" + text, "a.yaml");
  Derived derived;
  derived.problems = text_of(bind_recipe(document.root, derived.recipe, recipe_catalogue()));
  return derived;
}

using Sizes = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("batch size: any of the three numbers are completed by the others", "[recipe]") {
  CHECK(derive("").sizes() == Sizes{32, 1, 32});
  CHECK(derive("micro_batch_size: 8\n").sizes() == Sizes{8, 1, 8});
  CHECK(derive("gradient_accumulation_steps: 3\n").sizes() == Sizes{32, 3, 96});
  CHECK(derive("global_batch_size: 100\n").sizes() == Sizes{100, 1, 100});
  CHECK(derive("micro_batch_size: 8\ngradient_accumulation_steps: 3\n").sizes() == Sizes{8, 3, 24});
  CHECK(derive("micro_batch_size: 8\nglobal_batch_size: 24\n").sizes() == Sizes{8, 3, 24});
  CHECK(derive("gradient_accumulation_steps: 3\nglobal_batch_size: 24\n").sizes() == Sizes{8, 3, 24});
  const Derived all =
      derive("micro_batch_size: 8\ngradient_accumulation_steps: auto\nglobal_batch_size: 16\n");
  CHECK(all.sizes() == Sizes{8, 2, 16});
  CHECK(all.problems.empty());
}

TEST_CASE("batch size: numbers that do not agree are refused with the arithmetic", "[recipe]") {
  CHECK(derive("micro_batch_size: 32\ngradient_accumulation_steps: 4\nglobal_batch_size: 100\n").problems ==
        "a.yaml:4:20: global_batch_size is 100; micro_batch_size 32 times gradient_accumulation_steps 4 is "
        "128; leave one of the three out, or set it to auto");
  CHECK(derive("micro_batch_size: 32\nglobal_batch_size: 100\n").problems ==
        "a.yaml:3:20: global_batch_size is 100; expected a multiple of micro_batch_size 32");
  CHECK(derive("gradient_accumulation_steps: 3\nglobal_batch_size: 2\n").problems ==
        "a.yaml:3:20: global_batch_size is 2; expected a multiple of gradient_accumulation_steps 3");
  CHECK(
      derive("micro_batch_size: 1000000000\ngradient_accumulation_steps: 2\n").problems ==
      "a.yaml:3:30: micro_batch_size 1000000000 times gradient_accumulation_steps 2 is 2000000000; expected "
      "at most 1000000000 samples per update");
}

TEST_CASE("batch size: a number that cannot be read is one problem, and not a second one", "[recipe]") {
  const Derived derived =
      derive("micro_batch_size: x\ngradient_accumulation_steps: 4\nglobal_batch_size: 9\n");
  CHECK(derived.problems == "a.yaml:2:19: micro_batch_size is x; expected an integer or auto");
  CHECK(derived.sizes() == Sizes{1, 4, 9});
}
