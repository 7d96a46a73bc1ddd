#include "base/text.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/shipped_recipes.h"
#include "recipe/write.h"
#include "run/plan.h"
#include "run/run.h"
#include "run/standard_output.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

namespace gputrain::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  gputrain recipes quickstart > mine.yaml
  gputrain run mine.yaml
  gputrain run mine.yaml optimizer.lr=0.05 epochs=10 ~max_grad_norm
  gputrain run mine.yaml --restart --output-dir /scratch/try2
  gputrain check mine.yaml
  gputrain check mine.yaml --print > resolved.yaml
  gputrain check mine.yaml --explain optimizer.lr
  gputrain schema > recipe.schema.json
  source <(gputrain completion bash)
  gputrain doctor

Exit codes: 0 done, 1 internal error, 2 command line or recipe, 3 data, 4 out of memory, 5 loss or
gradients not finite, 6 disk or output folder, 130 and 143 stopped by SIGINT and SIGTERM (or SIGHUP).)";

// What can be written on the command line.
struct Settings {
  run::Request request;
  std::map<std::string, std::vector<std::string>> typed;  // by Change::option
  bool dry_run = false;
  bool print = false;
  std::string explain;
  bool json = false;
  std::string folder = ".";
  bool markdown = false;
  std::string shipped;
  std::string shell;
};

// A command and what it does once the command line is read.
struct Command {
  CLI::App* app;
  std::function<ExitCode()> start;
};

std::function<ExitCode()> then_done(std::function<void()> work) {
  return [work = std::move(work)] {
    work();
    return ExitCode::kDone;
  };
}

// Options that change the recipe, and how each is written as an argument of recipe::load_recipe.
struct Change {
  const char* option;
  const char* placeholder;
  const char* meaning;
  std::string (*argument)(const std::string& value);
};

const std::vector<Change>& changes() {
  static const std::vector<Change> all = {
      {"overrides", "KEY=VALUE", "key=value sets a key of the recipe (optimizer.lr=0.05), ~key removes one",
       [](const std::string& value) { return value; }},
      {"--set", "KEY=VALUE", "the same as key=value", [](const std::string& value) { return value; }},
      {"--unset", "KEY", "the same as ~key", [](const std::string& value) { return "~" + value; }},
      // A folder may be called what YAML takes for a list or for nothing.
      {"--output-dir", "FOLDER", "the same as output_dir=FOLDER",
       [](const std::string& value) { return "output_dir=" + recipe::scalar_text(value); }}};
  return all;
}

void add_recipe_arguments(CLI::App& command, Settings& settings) {
  command.add_option("recipe", settings.request.recipe, "recipe to read (YAML)")
      ->required()
      ->type_name("FILE");
  for (const Change& change : changes()) {
    CLI::Option* option = command.add_option(change.option, settings.typed[change.option], change.meaning)
                              ->type_name(change.placeholder);
    if (!option->get_positional()) option->allow_extra_args(false);
  }
}

// The recipe's arguments in the order in which they were typed: the last one wins.
run::Request with_arguments(run::Request request, const CLI::App& command) {
  std::map<const CLI::Option*, std::size_t> taken;
  for (const CLI::Option* option : command.parse_order()) {
    const auto change = std::find_if(changes().begin(), changes().end(), [&](const Change& one) {
      return option == command.get_option_no_throw(one.option);
    });
    if (change == changes().end()) continue;
    request.arguments.push_back(change->argument(option->results().at(taken[option]++)));
  }
  return request;
}

Command add_run(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand("run", "train a recipe");
  add_recipe_arguments(*command, settings);
  command->add_flag("--restart", settings.request.restart,
                    "move an earlier run of the same folder aside, and begin anew");
  command->add_flag("--dry-run", settings.dry_run, "only check, as `gputrain check` does");
  return {command, [&settings, command] {
            const run::Request request = with_arguments(settings.request, *command);
            if (!settings.dry_run) return run::run(request);
            run::check(request);
            return ExitCode::kDone;
          }};
}

Command add_check(CLI::App& app, Settings& settings) {
  CLI::App* command =
      app.add_subcommand("check", "read a recipe, open its data, build its model; train nothing");
  add_recipe_arguments(*command, settings);
  CLI::Option* print = command->add_flag("--print", settings.print,
                                         "only print the recipe with every value and where it comes from");
  CLI::Option* explain =
      command->add_option("--explain", settings.explain,
                          "only say what a key means, may be, and is in this recipe (optimizer.lr)");
  explain->type_name("KEY")->excludes(print);
  return {command, then_done([&settings, command, explain] {
            const run::Request request = with_arguments(settings.request, *command);
            if (settings.print) return run::print_resolved(request);
            if (explain->count() > 0) return run::explain(request, settings.explain);
            run::check(request);
          })};
}

Command add_doctor(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand("doctor", "what is there, and whether it will train");
  command->add_flag("--json", settings.json, "findings and environment as JSON");
  command->add_option("--output-dir", settings.folder, "where runs will be written, for its free space")
      ->type_name("FOLDER");
  return {command, [&settings] { return doctor(settings.json, settings.folder); }};
}

Command add_recipes(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand("recipes", "list the recipes that ship, or print one");
  CLI::Option* name =
      command->add_option("name", settings.shipped, "recipe to print to stdout")->type_name("NAME");
  command->add_flag("--json", settings.json, "the list as JSON")->excludes(name);
  return {command, then_done([&settings] {
            if (settings.shipped.empty()) return list_recipes(settings.json);
            print_recipe(settings.shipped);
          })};
}

Command add_schema(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand("schema", "print the JSON Schema of the recipe, for editors");
  command->add_flag("--markdown", settings.markdown, "a page with every key instead (docs/recipe.md)");
  return {command, then_done([&settings] { schema(settings.markdown); })};
}

// What --help shows of a command.
CommandSummary summary(const CLI::App& command, const std::string& name) {
  CommandSummary all{name, {}, {}, ""};
  for (const CLI::Option* option : command.get_options()) {
    const bool takes_one = option->get_expected_max() == 1;
    const std::string placeholder = option->get_expected_max() == 0 ? "" : option->get_type_name();
    if (!option->get_positional()) {
      for (const std::string& long_name : option->get_lnames()) {
        all.options.push_back({"--" + long_name, placeholder});
      }
    } else if (takes_one) {
      all.places.push_back(placeholder);
    } else {
      all.rest = placeholder;
    }
  }
  return all;
}

void print_completion(const CLI::App& app, const std::string& shell) {
  std::vector<CommandSummary> commands{summary(app, "")};
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.push_back(summary(*command, command->get_name()));
  }
  std::vector<std::string> recipes;
  for (const ShippedRecipe& recipe : shipped_recipes()) recipes.push_back(recipe.name);
  run::to_stdout(completion_script(shell, commands, run::catalogue(), recipes));
}

Command add_completion(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand("completion", "print what makes a shell complete gputrain's words");
  command->add_option("shell", settings.shell, "bash or zsh")->required()->type_name("SHELL");
  return {command, then_done([&app, &settings] { print_completion(app, settings.shell); })};
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

// Typed as an option, but a key of the recipe: "epochs=1" for --epochs 1; "" where nothing is.
std::string meant_as_setting(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) continue;
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = recipe::canonical(word.substr(2, equals - 2));
    const auto known = run::catalogue().known();
    const auto is_key = [&](const recipe::KnownKey& one) { return one.path == key; };
    if (std::none_of(known.begin(), known.end(), is_key)) continue;
    const bool value_follows = equals == word.size() && i + 1 < argc && argv[i + 1][0] != '-';
    const std::string value = equals < word.size() ? word.substr(equals + 1)
                              : value_follows      ? argv[i + 1]
                                                   : "VALUE";
    return concat(key, '=', value);
  }
  return "";
}

// What is said of a command line that cannot be read.
std::string explain(const CLI::ParseError& error, int argc, char** argv) {
  if (argc < 2) return "expected a command, as in: gputrain run recipe.yaml";
  if (const std::string meant = meant_as_setting(argc, argv); !meant.empty())
    return concat("keys of the recipe are no options; did you mean ", meant, '?');
  return error.what();
}

// A recipe that ships is no file here until it is copied.
void refuse_name_of_shipped(const std::string& recipe) {
  std::error_code ignored;
  if (recipe.empty() || std::filesystem::exists(recipe, ignored)) return;
  const std::string name = std::filesystem::path(recipe).stem().string();
  for (const ShippedRecipe& shipped : shipped_recipes()) {
    if (shipped.name != name) continue;
    throw Error(ExitCode::kUsage, concat(recipe, ": no such file; the recipe ", name,
                                         " ships: gputrain recipes ", name, " > ", name, ".yaml"));
  }
}

}  // namespace

ExitCode run_command_line(int argc, char** argv) {
  CLI::App app("Trains models from YAML recipes with LibTorch.", "gputrain");
  app.set_version_flag("--version", "gputrain " GPUTRAIN_VERSION);
  app.footer(kExamples);
  app.require_subcommand(1);
  Settings settings;
  const std::vector<Command> commands{add_run(app, settings),     add_check(app, settings),
                                      add_recipes(app, settings), add_schema(app, settings),
                                      add_doctor(app, settings),  add_completion(app, settings)};

  refuse_unknown_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_text = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (!asked_for_text)
      throw Error(ExitCode::kUsage, concat(explain(error, argc, argv), "; gputrain --help shows examples"));
    app.exit(error);
    return ExitCode::kDone;
  }
  refuse_name_of_shipped(settings.request.recipe);
  const auto is_chosen = [](const Command& command) { return command.app->parsed(); };
  return std::find_if(commands.begin(), commands.end(), is_chosen)->start();
}

}  // namespace gputrain::cli
