#include "recipe/batch_size.h"

#include "base/text.h"

#include <algorithm>
#include <array>

namespace gputrain::recipe {
namespace {

constexpr std::int64_t kDefaultMicro = 32;
constexpr std::int64_t kMostSamples = 1'000'000'000;

struct Number {
  const char* key;
  std::optional<std::int64_t>& value;
};

// What was written there could not be read, which is a problem already.
bool is_refused(const Number& number, const Node& root) {
  const Node* node = root.find(number.key);
  return node != nullptr && node->scalar != "auto" && !number.value;
}

void refuse(const Number& global, const Node& root, const std::string& why, std::vector<Problem>& problems) {
  problems.push_back({origin_of(root, global.key), concat(global.key, " is ", *global.value, "; ", why)});
}

std::string shown(const Number& number) {
  return concat(number.key, ' ', *number.value);
}

void divide(const Number& global, const Number& given, Number wanted, const Node& root,
            std::vector<Problem>& problems) {
  wanted.value = std::max<std::int64_t>(*global.value / *given.value, 1);
  if (*global.value % *given.value == 0) return;
  refuse(global, root, concat("expected a multiple of ", shown(given)), problems);
}

void compare(const Number& micro, const Number& steps, const Number& global, const Node& root,
             std::vector<Problem>& problems) {
  const std::int64_t product = *micro.value * *steps.value;
  if (product == *global.value) return;
  refuse(global, root,
         concat(shown(micro), " times ", shown(steps), " is ", product,
                "; leave one of the three out, or set it to auto"),
         problems);
}

}  // namespace

void derive_batch_sizes(Recipe& recipe, const Node& root, std::vector<Problem>& problems) {
  const Number micro{"micro_batch_size", recipe.micro_batch_size};
  const Number steps{"gradient_accumulation_steps", recipe.gradient_accumulation_steps};
  const Number global{"global_batch_size", recipe.global_batch_size};
  const std::array<Number, 3> all{micro, steps, global};
  if (std::any_of(all.begin(), all.end(), [&](const Number& one) { return is_refused(one, root); })) {
    for (const Number& one : all) one.value = one.value.value_or(1);
    return;
  }
  if (global.value && micro.value && steps.value) return compare(micro, steps, global, root, problems);
  if (global.value && micro.value) return divide(global, micro, steps, root, problems);
  if (global.value && steps.value) return divide(global, steps, micro, root, problems);
  if (!steps.value) steps.value = 1;
  if (!micro.value) micro.value = global.value.value_or(kDefaultMicro);
  global.value = *micro.value * *steps.value;  // each is at most 1e9
  if (*global.value <= kMostSamples) return;
  problems.push_back(
      {origin_of(root, steps.key), concat(shown(micro), " times ", shown(steps), " is ", *global.value,
                                          "; expected at most ", kMostSamples, " samples per update")});
}

}  // namespace gputrain::recipe
