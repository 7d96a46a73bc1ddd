#pragma once

#include "base/error.h"

#include <string>

namespace gputrain::cli {

// Reads the command line and does what it says. Returns the exit code; what goes wrong is thrown as Error.
ExitCode run_command_line(int argc, char** argv);

// gputrain doctor: what is there, and whether it will train. The findings go to stdout. kUsage when it
// will not.
ExitCode doctor(bool json, const std::string& output_dir);

// gputrain schema: the recipe's JSON Schema, or its reference in Markdown, to stdout.
void schema(bool markdown);

// gputrain recipes: the recipes that ship, or the text of one, to stdout. Throws Error(kUsage) for a name
// that there is not.
void list_recipes(bool json);
void print_recipe(const std::string& name);

}  // namespace gputrain::cli
