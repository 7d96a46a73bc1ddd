#include "base/text.h"
#include "cli/commands.h"
#include "cli/shipped_recipes.h"
#include "recipe/read.h"
#include "run/standard_output.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

namespace gputrain::cli {
namespace {

// The comment that a recipe begins with, in one line.
std::string comment_at_top(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::string> words;
  for (std::string line; std::getline(lines, line) && line.rfind("# ", 0) == 0;) {
    words.push_back(line.substr(2));
  }
  return join(words, " ");
}

// What stands before its first colon or full stop: as much as a list has room for.
std::string title(const std::string& comment) {
  return comment.substr(0, std::min(comment.find(": "), comment.find(". ")));
}

std::string list() {
  std::size_t width = 0;
  for (const ShippedRecipe& recipe : shipped_recipes()) width = std::max(width, recipe.name.size());
  std::string text;
  for (const ShippedRecipe& recipe : shipped_recipes()) {
    const std::string gap(width + 2 - recipe.name.size(), ' ');
    text += concat(recipe.name, gap, title(comment_at_top(recipe.text)), '\n');
  }
  return text;
}

std::string list_as_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ShippedRecipe& recipe : shipped_recipes()) {
    list.push_back({{"name", recipe.name}, {"meaning", comment_at_top(recipe.text)}});
  }
  return list.dump(2) + '\n';
}

const ShippedRecipe& find(const std::string& name) {
  std::vector<std::string> names;
  for (const ShippedRecipe& recipe : shipped_recipes()) {
    if (recipe.name == name) return recipe;
    names.push_back(recipe.name);
  }
  const std::string guess = nearest(name, names);
  throw Error(ExitCode::kUsage, concat(name, " is no recipe that ships; expected ", join(names, ", ", " or "),
                                       guess.empty() ? "" : concat("; did you mean ", guess, '?')));
}

// Names of the recipes that this one is laid over.
std::vector<std::string> bases_of(const ShippedRecipe& recipe) {
  const recipe::Document document = recipe::read_text(recipe.text, recipe.name);
  const recipe::Node* base = document.root.find("base");
  std::vector<std::string> names;
  if (base == nullptr) return names;
  if (base->kind == recipe::Node::Kind::kScalar) names.push_back(base->scalar);
  for (const recipe::Node& one : base->list) names.push_back(one.scalar);
  for (std::string& name : names) name = std::filesystem::path(name).stem().string();
  return names;
}

}  // namespace

void list_recipes(bool json) {
  run::to_stdout(json ? list_as_json() : list());
}

void print_recipe(const std::string& name) {
  const ShippedRecipe& recipe = find(name);
  run::to_stdout(recipe.text);
  for (const std::string& base : bases_of(recipe)) {
    std::cerr << "note: " << name << " is laid over " << base
              << ", which has to lie beside it: gputrain recipes " << base << " > " << base << ".yaml\n";
  }
}

}  // namespace gputrain::cli
