#include "base/text.h"
#include "cli/commands.h"
#include "run/run.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace gputrain::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  gputrain run configs/quickstart.yaml
  gputrain run configs/fashion-resnet18.yaml optimizer.lr=0.05 epochs=10
  gputrain run recipe.yaml --restart --output-dir /scratch/try2
  gputrain check recipe.yaml > resolved.yaml
  gputrain doctor

Exit codes: 0 done, 1 internal error, 2 command line or recipe, 3 data, 4 out of memory, 5 loss or
gradients not finite, 6 disk or output folder, 130 and 143 stopped by SIGINT and SIGTERM (or SIGHUP).)";

struct RecipeArguments {
  run::Request request;
  std::vector<std::string> unset;
  std::string output_dir;

  run::Request resolved() const {
    run::Request all = request;
    for (const std::string& key : unset) all.arguments.push_back("~" + key);
    if (!output_dir.empty()) all.arguments.push_back("output_dir=" + output_dir);
    return all;
  }
};

void add_recipe_arguments(CLI::App& command, RecipeArguments& arguments) {
  command.add_option("recipe", arguments.request.recipe, "recipe to read (YAML)")->required();
  command.add_option("overrides", arguments.request.arguments,
                     "key=value sets a key of the recipe (optimizer.lr=0.05), ~key removes one");
  command.add_option("--unset", arguments.unset, "remove a key of the recipe")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command.add_option("--output-dir", arguments.output_dir, "the same as output_dir=FOLDER")
      ->type_name("FOLDER");
}

void refuse_unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  const std::string word = argv[1];
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) commands.push_back(command->get_name());
  if (std::find(commands.begin(), commands.end(), word) != commands.end()) return;
  std::string text = concat(word, " is no command; expected ", join(commands, ", ", " or "));
  if (const std::string guess = nearest(word, commands); !guess.empty())
    text += "; did you mean " + guess + "?";
  throw Error(ExitCode::kUsage, text + " (gputrain --help shows examples)");
}

}  // namespace

ExitCode run_command_line(int argc, char** argv) {
  CLI::App app("Trains models from YAML recipes with LibTorch.", "gputrain");
  app.set_version_flag("--version", "gputrain " GPUTRAIN_VERSION);
  app.footer(kExamples);
  app.require_subcommand(1);

  RecipeArguments recipe;
  bool dry_run = false;
  CLI::App* run_command = app.add_subcommand("run", "train a recipe");
  add_recipe_arguments(*run_command, recipe);
  run_command->add_flag("--restart", recipe.request.restart,
                        "move an earlier run of the same folder aside, and begin anew");
  run_command->add_flag("--dry-run", dry_run, "only check, as `gputrain check` does");

  CLI::App* check_command =
      app.add_subcommand("check", "read a recipe, open its data, build its model; train nothing");
  add_recipe_arguments(*check_command, recipe);

  bool json = false;
  std::string folder = ".";
  CLI::App* doctor_command = app.add_subcommand("doctor", "what is there, and whether it will train");
  doctor_command->add_flag("--json", json, "findings and environment as JSON");
  doctor_command->add_option("--output-dir", folder, "where runs will be written, for its free space")
      ->type_name("FOLDER");

  refuse_unknown_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_text = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (!asked_for_text)
      throw Error(ExitCode::kUsage, concat(error.what(), "; gputrain --help shows examples"));
    app.exit(error);
    return ExitCode::kDone;
  }
  if (doctor_command->parsed()) return doctor(json, folder);
  if (run_command->parsed() && !dry_run) return run::run(recipe.resolved());
  run::check(recipe.resolved());
  return ExitCode::kDone;
}

}  // namespace gputrain::cli
