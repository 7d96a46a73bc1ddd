#pragma once

#include "recipe/load.h"
#include "recipe/merge.h"
#include "recipe/overrides.h"
#include "recipe/read.h"
#include "recipe/substitute.h"
#include "recipe/words.h"
#include "recipe/write.h"

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace gputrain {

// Throws where what write_recipe() made of a recipe without problems does not read back as that recipe.
inline void read_back(const recipe::Recipe& written, const recipe::Node& root,
                      const std::map<std::string, recipe::Describe>& components) {
  recipe::Document document =
      recipe::read_text(recipe::write_recipe(written, components, &root), "resolved.yaml");
  const auto nothing = [](const std::string&) { return std::optional<std::string>(); };
  recipe::substitute(document.root, nothing, nothing, document.problems);
  recipe::Recipe again;
  for (recipe::Problem& problem : recipe::bind_recipe(document.root, again, recipe::recipe_catalogue())) {
    document.problems.push_back(std::move(problem));
  }
  if (!document.problems.empty()) throw std::logic_error(recipe::text_of(document.problems));
  if (recipe::write_recipe(again, components) != recipe::write_recipe(written, components)) {
    throw std::logic_error("what was written reads back as another recipe");
  }
}

// Takes `text` through all that a recipe goes through between its file and what is told of it: as a file, as
// a file over itself, as arguments, as resolved.yaml.
inline void read_as_fuzzed(const std::string& text) {
  const recipe::ComponentNames components = {{"model", ""}, {"optimizer", "sgd"}};
  std::vector<std::string> notices;
  recipe::Document document = recipe::read_text(text, "fuzz.yaml");
  recipe::translate_words(document.root, document.problems, notices);
  std::vector<recipe::Problem> problems;  // of the recipe that comes of it all
  if (document.root.kind == recipe::Node::Kind::kMap) {
    recipe::merge(document.root, document.root, components, notices);
    recipe::apply_overrides(document.root, {text, "optimizer.name=" + text}, components, document.problems,
                            notices);
    const auto given_back = [](const std::string& name) { return std::optional<std::string>(name); };
    const auto reference = [](const std::string& name) { return std::optional("${" + name + "}"); };
    recipe::substitute(document.root, given_back, reference, problems);
  }
  recipe::Recipe bound;
  const recipe::Catalogue catalogue = recipe::recipe_catalogue();
  for (recipe::Problem& problem : recipe::bind_recipe(document.root, bound, catalogue)) {
    problems.push_back(std::move(problem));
  }
  const recipe::Describe none = [](recipe::Visitor&) {};
  const std::map<std::string, recipe::Describe> without_keys = {
      {"model", none}, {"data", none}, {"objective", none}, {"optimizer", none}, {"lr_scheduler", none}};
  recipe::write_recipe(bound, without_keys, &document.root);
  if (problems.empty()) read_back(bound, document.root, without_keys);
  document.problems.insert(document.problems.end(), problems.begin(), problems.end());
  recipe::sort_by_position(document.problems);
  recipe::text_of(document.problems);
}

}  // namespace gputrain
