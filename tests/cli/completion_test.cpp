#include "cli/workshop.h"
#include "support/shell.h"

namespace gputrain::testing {
namespace {

// A folder with recipes and the scripts for both shells.
struct Completing : Workshop {
  Completing() {
    write("other.yml", "");
    write("notes.txt", "");
    std::filesystem::create_directory(folder / "sub");
    write("bash", gputrain({"completion", "bash"}).out);
    write("_gputrain", gputrain({"completion", "zsh"}).out);
  }

  // Standard error is part of the output.
  ShellResult in_folder(const std::string& command) const {
    return run_shell("{ cd '" + folder.path().string() + "' || exit 99\n" + command + "\n} 2>&1");
  }

  // What bash offers for the last of the words, which are given as bash cuts them.
  std::string offers(const std::string& words) const {
    return in_folder("bash --norc '" + source_path() + "/tests/cli/complete.bash' ./bash gputrain " + words)
        .output;
  }
};

}  // namespace

TEST_CASE("completion: bash offers commands and their options", "[cli]") {
  const Completing shop;
  CHECK(shop.offers("''") == "run\ncheck\nrecipes\nschema\ndoctor\ncompletion\n");
  CHECK(shop.offers("ch") == "check\n");
  CHECK(shop.offers("run --re") == "--restart\n");
  CHECK(shop.offers("check --ex") == "--explain\n");
  CHECK(shop.offers("--v") == "--version\n");
  CHECK(shop.offers("recipes q") == "quickstart\n");
  CHECK(shop.offers("completion ''") == "bash\nzsh\n");
}

TEST_CASE("completion: bash offers recipes and folders where one is expected", "[cli]") {
  const Completing shop;
  CHECK(shop.offers("run ''") == "other.yml\nrecipe.yaml\nsub\n");
  CHECK(shop.offers("check --print rec") == "recipe.yaml\n");
  CHECK(shop.offers("run --output-dir ''") == "sub\n");
  CHECK(shop.offers("run --output-dir = s") == "sub\n");
  CHECK(shop.in_folder("export HOME=$PWD\nbash --norc '" + source_path() +
                       "/tests/cli/complete.bash' ./bash gputrain run '~/s'")
            .output == "~/sub\n");
}

TEST_CASE("completion: bash offers keys of the recipe and of every kind of component", "[cli]") {
  const Completing shop;
  CHECK(shop.offers("run a.yaml optimizer.mo") == "optimizer.momentum=\n");
  CHECK(shop.offers("run a.yaml optimizer.beta") ==
        "optimizer.beta1=\noptimizer.beta2=\noptimizer.beta2_exponent=\n");
  CHECK(shop.offers("run a.yaml --set prec") == "precision=\n");
  CHECK(shop.offers("run a.yaml --restart optimizer.lr = 0.1 see") == "seed=\n");
  CHECK(shop.offers("run a.yaml '~optimizer.mo'") == "~optimizer.momentum\n");
  CHECK(shop.offers("run a.yaml '~cpu'") == "~cpu\n~cpu.threads\n");
  CHECK(shop.offers("run a.yaml --unset cpu.") == "cpu.threads\n");
  CHECK(shop.offers("check a.yaml --explain logging.w") == "logging.warmup_steps\n");
  CHECK(shop.offers("run a.yaml nonsense") == "\n");
}

TEST_CASE("completion: bash offers the values of enumerations, booleans and names", "[cli]") {
  const Completing shop;
  CHECK(shop.offers("run a.yaml precision = fp32") == "fp32\n");
  CHECK(shop.offers("run a.yaml precision = t") == "tf32\n");
  CHECK(shop.offers("run a.yaml optimizer.name = adamw") == "adamw\n");
  CHECK(shop.offers("run a.yaml logging.csv =") == "true\nfalse\n");
  CHECK(shop.offers("run a.yaml device = c") == "cpu\ncuda\n");
  CHECK(shop.offers("run a.yaml data.name = testing") == "\n");
  CHECK(shop.offers("run --set = precision = t") == "tf32\n");
}

TEST_CASE("completion: bash that does not cut words at = gets the whole word", "[cli]") {
  const Completing shop;
  const std::string script =
      "COMP_WORDBREAKS=' '\nsource ./bash\nCOMP_WORDS=(gputrain run a.yaml precision=t)\n"
      "COMP_CWORD=3\n_gputrain\necho \"${COMPREPLY[@]}\"\n";
  shop.write("whole", script);
  CHECK(shop.in_folder("bash --norc whole").output == "precision=tf32\n");
}

TEST_CASE("completion: zsh loads it, and finds the same words", "[cli]") {
  if (run_shell("command -v zsh").exit_code != 0) GPUTRAIN_SKIP("zsh is not installed");
  const Completing shop;
  CHECK(shop.in_folder("zsh -n _gputrain").output.empty());
  CHECK(shop.in_folder("zsh -f -c 'autoload -Uz compinit && compinit -u -D && source ./_gputrain && "
                       "echo $_comps[gputrain]'")
            .output == "_gputrain\n");
  CHECK(shop.in_folder("zsh -f -c 'fpath=($PWD $fpath); autoload -Uz compinit && compinit -u -D && "
                       "echo $_comps[gputrain]'")
            .output == "_gputrain\n");
  const std::string load = "compdef() { : }\nsource ./_gputrain\n_gputrain_candidates gputrain ";
  shop.write("values", load + "run a.yaml on_nonfinite=");
  CHECK(shop.in_folder("zsh -f values").output == "on_nonfinite=skip\non_nonfinite=stop\n");
  shop.write("files", load + "run ''");
  CHECK(shop.in_folder("zsh -f files").output == "FILE\n");
}

TEST_CASE("completion: what is installed for bash asks the program", "[cli]") {
  const Completing shop;
  const std::string folder = std::filesystem::path(binary_path()).parent_path().string();
  const std::string sources = source_path();
  CHECK(shop.in_folder("PATH='" + folder + "':$PATH bash --norc '" + sources + "/tests/cli/complete.bash' '" +
                       sources + "/scripts/completion/gputrain.bash' gputrain ch")
            .output == "check\n");
}

TEST_CASE("completion: other shells are refused by name", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"completion", "fish"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("there is no completion for fish; expected bash or zsh"));
}

}  // namespace gputrain::testing
