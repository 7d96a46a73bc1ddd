#include "recipe/load.h"

#include "recipe/keys.h"
#include "support/catch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace gputrain::recipe;
namespace fs = std::filesystem;

namespace {

// A recipe file in a folder that goes away.
struct File {
  fs::path folder;
  std::string path;
  explicit File(const std::string& text) {
    std::string name = (fs::temp_directory_path() / "gputrain-XXXXXX").string();
    folder = mkdtemp(name.data());
    path = (folder / "tiny.yaml").string();
    std::ofstream(path) << text;
  }
  ~File() { fs::remove_all(folder); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

constexpr const char* kTiny =
    "max_steps: 1\nmodel: {name: mlp, hidden: 8}\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n";

Loaded load(const std::string& path, const std::vector<std::string>& arguments = {}) {
  Catalogue catalogue = recipe_catalogue();
  Key lr, momentum;
  lr.path = "optimizer.lr";
  lr.value = "0.1";
  momentum.path = "optimizer.momentum";
  momentum.value = "0.9";
  catalogue.kinds["optimizer"] = {{"sgd", "", {lr, momentum}}};
  return load_recipe(path, arguments, catalogue);
}

// Problems with the file's folder cut off.
std::string problems_with(const std::string& text, const std::vector<std::string>& arguments = {}) {
  const File file(text);
  std::string problems = text_of(load(file.path, arguments).problems);
  for (std::size_t at; (at = problems.find(file.folder.string() + "/")) != std::string::npos;) {
    problems.erase(at, file.folder.string().size() + 1);
  }
  return problems;
}

}  // namespace

TEST_CASE("load: keys that are not given have their defaults", "[recipe]") {
  const File file(kTiny);
  const Loaded loaded = load(file.path);
  REQUIRE(text_of(loaded.problems).empty());
  CHECK(loaded.text == kTiny);
  CHECK(loaded.recipe.name == "tiny");
  CHECK(loaded.recipe.output_dir == "runs/tiny");
  CHECK(loaded.recipe.seed == 1);
  CHECK(loaded.recipe.micro_batch_size == 32);
  CHECK(loaded.recipe.precision == Precision::kAuto);
  CHECK(loaded.recipe.objective.name == "cross_entropy");
  CHECK(loaded.recipe.lr_scheduler.name == "constant");
  CHECK(!loaded.recipe.epochs);
  CHECK(!loaded.recipe.max_grad_norm);
}

TEST_CASE("load: all mistakes are found at once, in the order of the file", "[recipe]") {
  CHECK(problems_with("device: gpu\nlearing_rate: 0.1\nmomentum: 0.9\nlogging: {csv: yes, epochs: 3}\nseed: "
                      "-1\nseed: 2\n") ==
        "tiny.yaml: nothing ends the run; expected epochs, max_steps or max_time\n"
        "tiny.yaml:1:9: device is gpu; expected auto, cpu, cuda or cuda:N\n"
        "tiny.yaml:2:1: learing_rate is not a key of the recipe; did you mean learning_rate (optimizer.lr)?\n"
        "tiny.yaml:3:1: momentum is not a key of the recipe; it belongs under optimizer\n"
        "tiny.yaml:4:16: logging.csv is yes; expected true or false\n"
        "tiny.yaml:4:21: logging.epochs is not a key of logging; it belongs at the top level\n"
        "tiny.yaml:5:7: seed is -1; expected seed >= 0\n"
        "tiny.yaml:6:1: seed is given twice; the first is in line 5");
}

TEST_CASE("load: only devices that can exist are accepted", "[recipe]") {
  for (const std::string device : {"auto", "cpu", "cuda", "cuda:0", "cuda:15"}) {
    CHECK(problems_with("max_steps: 1\ndevice: " + device + "\n").empty());
  }
  for (const std::string device : {"'cuda:'", "cuda:x", "cuda:-1", "CUDA", "cuda:123", "''"}) {
    CHECK_THAT(problems_with("max_steps: 1\ndevice: " + device + "\n"),
               ContainsSubstring("expected auto, cpu, cuda or cuda:N"));
  }
}

TEST_CASE("load: counts that no run reaches are refused, before sums of them overflow", "[recipe]") {
  const auto [line, expected] = GENERATE(table<std::string, std::string>(
      {{"epochs: 1000000000001", "expected 1 <= epochs <= 1000000000000 or ~"},
       {"max_steps: 9223372036854775807", "expected 1 <= max_steps <= 1000000000000 or ~"},
       {"micro_batch_size: 1000000001", "expected 1 <= micro_batch_size <= 1000000000 or auto"},
       {"gradient_accumulation_steps: 1000000001",
        "expected 1 <= gradient_accumulation_steps <= 1000000000 or auto"},
       {"logging: {log_every: 1000000000001}", "expected 1 <= log_every <= 1000000000000"},
       {"logging: {warmup_steps: 1000000000001}", "expected 0 <= warmup_steps <= 1000000000000"},
       {"validation: {micro_batch_size: 1000000001}",
        "expected 1 <= micro_batch_size <= 1000000000 or auto"}}));
  CHECK_THAT(problems_with("max_time: 1h\n" + line + "\n"), Catch::Matchers::EndsWith("; " + expected));
}

TEST_CASE("load: a path in the place of a key is told how to be written", "[recipe]") {
  CHECK(problems_with("max_steps: 1\noptimizer.momentum: 0.1\nseed.x: 1\n") ==
        "tiny.yaml:2:1: optimizer.momentum is not a key of the recipe; write optimizer: {momentum: ...}\n" +
            problems_with("max_steps: 1\n\nseed.x: 1\n"));
}

TEST_CASE("load: any of the three limits ends a run", "[recipe]") {
  CHECK(problems_with("epochs: 1\n").empty());
  CHECK(problems_with("max_time: 2h\n").empty());
  CHECK(problems_with("epochs: ~\n") ==
        "tiny.yaml: nothing ends the run; expected epochs, max_steps or max_time");
  CHECK(problems_with("epochs: x\n") == "tiny.yaml:1:9: epochs is x; expected an integer or ~");
}

TEST_CASE("load: arguments win over the file, the last of them over the others", "[recipe]") {
  const File file(kTiny);
  const Loaded loaded = load(file.path, {"seed=3", "seed=4", "micro-batch-size=8", "optimizer.lr=1e-3",
                                         "validation.every=5", "name=other", "data={name: idx, path: x}"});
  REQUIRE(text_of(loaded.problems).empty());
  CHECK(loaded.recipe.seed == 4);
  CHECK(loaded.recipe.micro_batch_size == 8);
  CHECK(loaded.recipe.optimizer.settings.find("lr")->scalar == "1e-3");
  CHECK(loaded.recipe.validation.every.count == 5);
  CHECK(loaded.recipe.output_dir == "runs/other");
  CHECK(loaded.recipe.data.name == "idx");
  CHECK(origin_of(loaded.root, "seed").text() == "argument seed=4");
}

TEST_CASE("load: a key that is deleted has its default again", "[recipe]") {
  const File file("max_steps: 1\nseed: 5\nlogging: {csv: true, jsonl: false}\n");
  const Loaded loaded = load(file.path, {"~seed", "~logging.csv"});
  REQUIRE(text_of(loaded.problems).empty());
  CHECK(loaded.recipe.seed == 1);
  CHECK(!loaded.recipe.logging.csv);
  CHECK(!loaded.recipe.logging.jsonl);
}

TEST_CASE("load: mistakes in arguments name the argument", "[recipe]") {
  CHECK(problems_with(kTiny, {"seed=x"}) == "argument seed=x: seed is x; expected an integer");
  CHECK(problems_with(kTiny, {"sed=1"}) ==
        "argument sed=1: sed is not a key of the recipe; did you mean seed?");
}

TEST_CASE("load: misspelt words of other tools are known, and weak likenesses no hint", "[recipe]") {
  const std::string start = "tiny.yaml:2:1: ";
  CHECK(problems_with("max_steps: 1\nacum_steps: 2\n") ==
        start +
            "acum_steps is not a key of the recipe; did you mean accum_steps (gradient_accumulation_steps)?");
  CHECK(
      problems_with("max_steps: 1\nqqqq: 2\n") ==
      start +
          "qqqq is not a key of the recipe; expected one of its keys; gputrain schema --markdown lists them");
  CHECK(problems_with("max_steps: 1\ncpu: {qqqq: 2}\n") ==
        "tiny.yaml:2:7: cpu.qqqq is not a key of cpu; expected threads");
  // Their likenesses stand elsewhere: model, and the optimizer's beta1.
  CHECK(problems_with("max_steps: 1\nearly_stopping: {modl: max}\n") ==
        "tiny.yaml:2:18: early_stopping.modl is not a key of early_stopping; expected patience, min_delta or "
        "metric");
  CHECK(problems_with("max_steps: 1\n", {"ema={beta: 0.9}"}) ==
        "argument ema={beta: 0.9}: ema.beta is not a key of ema; expected decay or warmup");
  CHECK(problems_with("max_steps: 1\nlog_evry: 2\n") ==
        start + "log_evry is not a key of the recipe; did you mean logging.log_every?");
}

TEST_CASE("load: what cannot be read is one problem, in arguments too", "[recipe]") {
  CHECK(problems_with(kTiny, {"seed=[1"}) == "argument seed=[1: the closing ] of a list is missing");
  CHECK(problems_with(kTiny, {"optimizer.betas=[1"}) ==
        "argument optimizer.betas=[1: the closing ] of a list is missing");
  CHECK(problems_with(kTiny, {"optimizer=[1"}) ==
        "argument optimizer=[1: the closing ] of a list is missing");
  CHECK(problems_with(kTiny, {"max_steps=[1"}) ==
        "argument max_steps=[1: the closing ] of a list is missing");
  CHECK(problems_with(kTiny, {"seed=${nothing.x}"}) ==
        "argument seed=${nothing.x}: the recipe does not set nothing.x, and it has no default");
}

TEST_CASE("load: what a base that cannot be read leaves out is no problem", "[recipe]") {
  CHECK(problems_with("base: no-such.yaml\n") ==
        "tiny.yaml:1:7: cannot read base no-such.yaml: No such file or directory");
  CHECK(problems_with("base: ~\n") == "tiny.yaml:1:1: base is null; expected a file or a list of files");
  const File file("base: ~\nmodel: {hidden: 8}\noptimizer: {name: sgd}\n");
  const Recipe recipe = load(file.path).recipe;
  CHECK(recipe.data.settings.unreadable);
  CHECK(recipe.model.settings.unreadable);
  CHECK_FALSE(recipe.optimizer.settings.unreadable);
}

TEST_CASE("load: the same file gives the same recipe from any working directory", "[recipe]") {
  const File file("max_steps: 1\nlogging: {trace: t.jsonl}\n");
  const fs::path before = fs::current_path();
  const std::string here = load(file.path).recipe.output_dir;
  fs::current_path(file.folder);
  const Loaded there = load("tiny.yaml");
  fs::current_path(before);
  CHECK(there.recipe.output_dir == here);
  CHECK(there.recipe.logging.trace == "t.jsonl");
}

TEST_CASE("load: nothing is thrown for a file that cannot be read", "[recipe]") {
  const Loaded loaded = load("/no/such.yaml", {"seed=1"});
  CHECK(text_of(loaded.problems) == "/no/such.yaml: cannot read the recipe: No such file or directory");
}

TEST_CASE("load: a variable that is not set is one problem, whatever its key expects", "[recipe]") {
  CHECK(problems_with("max_steps: ${env:GPUTRAIN_NO_SUCH}\nseed: ${nothing.at.all}\n") ==
        "tiny.yaml:1:12: the environment variable GPUTRAIN_NO_SUCH is not set; set it, or give a default: "
        "${env:GPUTRAIN_NO_SUCH,default}\n"
        "tiny.yaml:2:7: the recipe does not set nothing.at.all, and it has no default");
}

TEST_CASE("load: what a value refers to may be a default", "[recipe]") {
  const File file(
      "name: ${seed}-${optimizer.momentum}-${logging.log_every}-${micro_batch_size}\nmax_steps: 1\n"
      "output_dir: out/${name}\n");
  const Loaded loaded = load(file.path);
  CHECK(text_of(loaded.problems).empty());
  CHECK(loaded.recipe.name == "1-0.9-10-32");
  CHECK(loaded.recipe.output_dir == "out/1-0.9-10-32");
  const File unnamed("max_steps: 1\noutput_dir: out/${name}\n");
  CHECK(load(unnamed.path).recipe.output_dir == "out/tiny");
  const File traced("max_steps: 1\nlogging: {trace: \"${output_dir}/t\"}\n");
  CHECK(load(traced.path).recipe.logging.trace == "runs/tiny/t");
  CHECK(load(traced.path, {"name=b"}).recipe.logging.trace == "runs/b/t");
  CHECK(problems_with("max_steps: 1\nname: ${output_dir}\n") ==
        "tiny.yaml:2:7: ${output_dir} leads back here: name -> output_dir -> name");
}

TEST_CASE("load: a recipe may have a file name that looks like a substitution", "[recipe]") {
  const File file("");
  const std::string path = (file.folder / "a ${b}.yaml").string();
  std::ofstream(path) << "max_steps: 1\nlogging: {trace: \"${output_dir}\"}\n";
  const Loaded loaded = load(path);
  CHECK(text_of(loaded.problems).empty());
  CHECK(loaded.recipe.logging.trace == "runs/a ${b}");
}

TEST_CASE("load: batch numbers that follow from others can be referred to", "[recipe]") {
  const auto name = [](const std::string& numbers) {
    const File file("max_steps: 1\nname: \"${micro_batch_size}-${global_batch_size}\"\n" + numbers);
    const Loaded loaded = load(file.path);
    return loaded.problems.empty() ? loaded.recipe.name : text_of(loaded.problems);
  };
  CHECK(name("micro_batch_size: 8\ngradient-accumulation-steps: 4\n") == "8-32");
  CHECK(name("global_batch_size: 64\n") == "64-64");
}

TEST_CASE("load: what is decided later cannot be referred to", "[recipe]") {
  CHECK(problems_with("max_steps: 1\nname: ${device}-${precision}\n") ==
        "tiny.yaml:2:7: device is auto, decided later; write a value for it\n"
        "tiny.yaml:2:7: precision is auto, decided later; write a value for it");
  CHECK(problems_with("max_steps: 1\nname: ${lr}\n") ==
        "tiny.yaml:2:7: the recipe does not set lr; did you mean ${optimizer.lr}?");
}

TEST_CASE("load: a component named by a variable keeps its settings", "[recipe]") {
  const File file("max_steps: 1\nname: ${optimizer.momentum}\noptimizer: {name: sgd, lr: 0.2}\n");
  const std::string variable = "optimizer.name=${env:GPUTRAIN_NO_SUCH,sgd}";
  const Loaded same = load(file.path, {variable});
  CHECK(text_of(same.problems).empty());
  CHECK(same.notices.empty());
  CHECK(same.recipe.optimizer.settings.find("lr") != nullptr);
  CHECK(same.recipe.name == "0.9");
  const Loaded other = load(file.path, {"optimizer.name=${env:GPUTRAIN_NO_SUCH,adamw}", "name=a"});
  CHECK(other.recipe.optimizer.settings.find("lr") == nullptr);
}

TEST_CASE("load: activation_checkpointing is a word, a list of layers, or a map", "[recipe]") {
  using Mode = ActivationCheckpointing::Mode;
  const auto read = [](const std::string& value) {
    const File file("max_steps: 1\nactivation_checkpointing: " + value + "\n");
    const Loaded loaded = load(file.path);
    CHECK(text_of(loaded.problems).empty());
    return loaded.recipe.activation_checkpointing;
  };
  CHECK(read("none").mode == Mode::kNone);
  CHECK(read("full").mode == Mode::kFull);
  CHECK(read("selective").mode == Mode::kSelective);
  CHECK(read("[layer1.*, fc]").match == std::vector<std::string>{"layer1.*", "fc"});
  CHECK(read("[fc]").mode == Mode::kFull);
  CHECK(read("{every: 2}").mode == Mode::kFull);
  CHECK(read("{every: 2}").every == 2);
  CHECK(read("{mode: selective, match: fc}").mode == Mode::kSelective);
  CHECK(read("{mode: none, every: 2}").mode == Mode::kNone);
  CHECK(read("{every: auto, match: []}").mode == Mode::kNone);
  CHECK(
      problems_with("max_steps: 1\nactivation_checkpointing: ful\n") ==
      "tiny.yaml:2:27: activation_checkpointing.mode is ful; expected none, full or selective; did you mean "
      "full?");
  CHECK(
      problems_with("max_steps: 1\nactivation_checkpointing: {every: 2, match: fc}\n") ==
      "tiny.yaml:2:35: activation_checkpointing.every is given, which counts blocks, and match, which names "
      "layers; expected one of them");
}

TEST_CASE("load: a number in place of loss_scale fixes it", "[recipe]") {
  const File file("max_steps: 1\nloss_scale: 1024\n");
  const Loaded fixed = load(file.path);
  CHECK(text_of(fixed.problems).empty());
  CHECK(fixed.recipe.loss_scale.fixed == 1024);
  CHECK(origin_of(fixed.root, "loss_scale.fixed").line == 2);
  const Loaded adapts = load(file.path, {"loss_scale={init: 8}"});
  CHECK(text_of(adapts.problems).empty());
  CHECK(!adapts.recipe.loss_scale.fixed);
  CHECK(adapts.recipe.loss_scale.init == 8);
  CHECK(problems_with("max_steps: 1\nloss_scale: -1\n") ==
        "tiny.yaml:2:13: loss_scale.fixed is -1; expected 0 < fixed <= 1000000000000 or ~");
}

TEST_CASE("load: bounds of the loss scale that do not hold its first value are refused", "[recipe]") {
  CHECK(problems_with("max_steps: 1\nloss_scale: {init: 65536, max: 16}\n") ==
        "tiny.yaml:2:13: loss_scale.init is 65536; expected loss_scale.min 1 <= init <= loss_scale.max 16");
}
