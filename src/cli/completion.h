#pragma once

#include "recipe/catalogue.h"

#include <string>
#include <vector>

namespace gputrain::cli {

// What one command takes, as --help shows it. Placeholders say what may stand there: FILE (a recipe), FOLDER,
// KEY and KEY=VALUE (of a recipe), NAME (of a recipe that ships), SHELL.
struct CommandSummary {
  struct Option {
    std::string name;         // "--restart"
    std::string placeholder;  // of the value that follows; "" for a flag
  };

  std::string name;  // "" for gputrain itself
  std::vector<Option> options;
  std::vector<std::string> places;  // placeholders of arguments that are no options
  std::string rest;                 // placeholder of any number of further ones; "": there are none
};

// What the completion of bash or zsh is to be told: source it, or save it where the shell looks for
// completions. `recipes` are the names of those that ship. Throws Error(kUsage) for other shells.
std::string completion_script(const std::string& shell, const std::vector<CommandSummary>& commands,
                              const recipe::Catalogue& catalogue, const std::vector<std::string>& recipes);

}  // namespace gputrain::cli
