#pragma once

#include "recipe/load.h"
#include "recipe/merge.h"
#include "recipe/overrides.h"
#include "recipe/read.h"
#include "recipe/substitute.h"
#include "recipe/words.h"
#include "recipe/write.h"

#include <optional>
#include <string>
#include <vector>

namespace gputrain {

// Takes `text` through all that a recipe goes through between its file and what is told of it: as a file, as
// a file over itself, as arguments.
inline void read_as_fuzzed(const std::string& text) {
  const recipe::ComponentNames components = {{"model", ""}, {"optimizer", "sgd"}};
  std::vector<std::string> notices;
  recipe::Document document = recipe::read_text(text, "fuzz.yaml");
  recipe::translate_words(document.root, document.problems, notices);
  if (document.root.kind == recipe::Node::Kind::kMap) {
    recipe::merge(document.root, document.root, components, notices);
    recipe::apply_overrides(document.root, {text, "optimizer.name=" + text}, components, document.problems,
                            notices);
    const auto given_back = [](const std::string& name) { return std::optional<std::string>(name); };
    recipe::substitute(document.root, given_back, given_back, document.problems);
  }
  recipe::Recipe bound;
  const recipe::Catalogue catalogue = recipe::recipe_catalogue();
  for (recipe::Problem& problem : recipe::bind_recipe(document.root, bound, catalogue)) {
    document.problems.push_back(std::move(problem));
  }
  recipe::sort_by_position(document.problems);
  recipe::text_of(document.problems);
  const recipe::Describe none = [](recipe::Visitor&) {};
  recipe::write_recipe(
      bound,
      {{"model", none}, {"data", none}, {"objective", none}, {"optimizer", none}, {"lr_scheduler", none}},
      &document.root);
}

}  // namespace gputrain
