#include "recipe/write.h"

#include "recipe/load.h"
#include "recipe/read.h"
#include "recipe/substitute.h"
#include "support/catch.h"

#include <regex>

using namespace gputrain::recipe;

namespace {

struct Group {
  std::vector<std::string> match;
  std::optional<double> decay;
};

void describe(Visitor& v, Group& o) {
  v.texts("match", o.match, "");
  v.number("decay", o.decay, Range{0, 1}, "", "");
}

struct Options {
  double lr = 0.1;
  std::optional<double> scale;
  std::optional<std::vector<double>> mean = std::vector<double>{0.25, 1e-5};
  std::vector<std::int64_t> layers = {64, 32};
  std::optional<std::string> path = "/data/a b";
  std::vector<Group> groups = {{{"layer4.*", "a: [b], {c}"}, 0.5}, {{"fc"}, {}}};
};

void describe(Visitor& v, Options& o) {
  v.number("lr", o.lr, Range{0, 1}, "", "");
  v.number("scale", o.scale, Range{0, 1}, "", "");
  v.numbers("mean", o.mean, Range{0, 1}, "", "");
  v.integers("layers", o.layers, Range{1, 99}, "", "");
  v.path("path", o.path, "");
  v.maps("groups", o.groups, "");
}

std::string written(const Recipe& recipe, const Node* root = nullptr) {
  static Options options;
  const Describe with_keys = [](Visitor& v) { describe(v, options); };
  const Describe without = [](Visitor&) {};
  return write_recipe(recipe,
                      {{"model", with_keys},
                       {"data", without},
                       {"objective", without},
                       {"optimizer", without},
                       {"lr_scheduler", without}},
                      root);
}

Recipe read_again(const std::string& text) {
  const Document document = read_text(text, "/run/resolved.yaml");
  INFO(text);
  REQUIRE(text_of(document.problems).empty());
  Recipe recipe;
  REQUIRE(text_of(bind_recipe(document.root, recipe, recipe_catalogue())).empty());
  return recipe;
}

}  // namespace

TEST_CASE("write: every key is there, defaults included", "[recipe]") {
  Recipe recipe;
  recipe.name = "a";
  recipe.output_dir = "runs/a";
  recipe.max_time = 5400;
  recipe.model.name = "mlp";
  recipe.data.name = "idx";
  CHECK(written(recipe) == R"(name: a
output_dir: runs/a
seed: 1
device: auto
precision: auto
deterministic: false
micro_batch_size: auto
gradient_accumulation_steps: auto
global_batch_size: auto
epochs: ~
max_steps: ~
max_time: 5400s
model:
  name: mlp
  lr: 0.1
  scale: auto
  mean: [0.25, 1e-05]
  layers: [64, 32]
  path: "/data/a b"
  groups: [{match: ["layer4.*", "a: [b], {c}"], decay: 0.5}, {match: [fc], decay: auto}]
data:
  name: idx
objective:
  name: cross_entropy
freeze: []
optimizer:
  name: sgd
lr_scheduler:
  name: constant
max_grad_norm: ~
max_grad_value: ~
loss_scale:
  fixed: ~
  init: 65536
  growth_factor: 2
  backoff_factor: 0.5
  growth_interval: 2000
  min: 1
  max: 16777216
activation_checkpointing:
  mode: none
  every: auto
  match: []
ema:
  decay: 0
  warmup: false
on_nonfinite: skip
max_skipped: 50
validation:
  every: 1ep
  micro_batch_size: auto
early_stopping:
  patience: ~
  min_delta: 0
  metric: auto
logging:
  log_every: 10
  jsonl: true
  csv: false
  tensorboard: true
  progress: auto
  trace: ~
  warmup_steps: 3
memory:
  limit: ~
  ledger: false
  snapshot: false
cuda:
  channels_last: auto
  cudnn_benchmark: auto
  graphs: auto
  allocator: auto
  empty_cache: on_oom
cpu:
  threads: auto
)");
}

TEST_CASE("write: what was written reads back as the same recipe", "[recipe]") {
  Recipe recipe;
  recipe.seed = INT64_MAX;
  recipe.device = "cuda:1";
  recipe.precision = Precision::kTf32;
  recipe.micro_batch_size = 4;
  recipe.gradient_accumulation_steps = 2;
  recipe.global_batch_size = 8;
  recipe.epochs = 3;
  recipe.max_time = 0.1;
  recipe.memory = {12348030977, true};
  recipe.cuda.allocator = CudaAllocator::kExpandable;
  recipe.cuda.empty_cache = EmptyCache::kNever;
  recipe.max_grad_norm = 1e-7;
  recipe.validation.every = {0.25, Interval::Unit::kEpochs};
  recipe.validation.micro_batch_size = 7;
  recipe.logging.progress = false;
  recipe.logging.trace = "a: b";
  recipe.cuda.channels_last = true;
  recipe.cpu.threads = 2;
  recipe.model.name = "mlp";
  recipe.data.name = "idx";
  const std::string text = written(recipe);
  const Recipe again = read_again(text);
  CHECK(written(again) == text);
  CHECK(again.seed == INT64_MAX);
  CHECK(again.max_time == 0.1);
  CHECK(again.max_grad_norm == 1e-7);
  CHECK(again.precision == Precision::kTf32);
  CHECK(again.validation.every.count == 0.25);
  CHECK(again.logging.progress == false);
}

TEST_CASE("write: a list of maps reads back as it was", "[recipe]") {
  Recipe recipe;
  recipe.model.name = "mlp";
  recipe.max_steps = 1;
  const Recipe again = read_again(written(recipe));
  Options options;
  options.groups.clear();
  const Describe with_keys = [&](Visitor& v) { describe(v, options); };
  REQUIRE(text_of(gputrain::recipe::bind(again.model.settings, "model", with_keys, {"name"})).empty());
  REQUIRE(options.groups.size() == 2);
  CHECK(options.groups[0].match == std::vector<std::string>{"layer4.*", "a: [b], {c}"});
  CHECK(options.groups[0].decay == 0.5);
  CHECK(options.groups[1].match == std::vector<std::string>{"fc"});
  CHECK(!options.groups[1].decay);
}

TEST_CASE("write: a comment says where each value comes from", "[recipe]") {
  const Document document =
      read_text("max_steps: 9\nprecision: auto\noptimizer: {name: sgd}\nlogging:\n  csv: true\n", "a/b.yaml");
  Recipe recipe;
  REQUIRE(text_of(bind_recipe(document.root, recipe, recipe_catalogue())).empty());
  recipe.name = "b";
  recipe.device = "cpu";
  recipe.precision = Precision::kFp32;
  const std::string text = std::regex_replace(written(recipe, &document.root), std::regex(" +#"), " #");
  for (const std::string line :
       {"name: b # default", "device: cpu # auto", "precision: fp32 # a/b.yaml:2:12, auto",
        "micro_batch_size: 32 # auto", "max_steps: 9 # a/b.yaml:1:12",
        "optimizer:", "  name: sgd # a/b.yaml:3:19", "logging:", "  csv: true # a/b.yaml:5:8",
        "  jsonl: true # default", "  path: \"/data/a b\" # default"}) {
    CHECK_THAT("\n" + text, ContainsSubstring("\n" + line + "\n"));
  }
}

TEST_CASE("write: text that looks like a substitution reads back as text", "[recipe]") {
  for (const std::string text : {"a${b}", "${env:HOME}", "$${seed}", "$$${", "${", "$"}) {
    Recipe recipe;
    recipe.name = text;
    recipe.max_steps = 1;
    recipe.logging.trace = text;
    Document document = read_text(written(recipe), "/run/resolved.yaml");
    std::vector<Problem> problems;
    const auto nothing = [](const std::string&) { return std::optional<std::string>(); };
    substitute(document.root, nothing, nothing, problems);
    CHECK(text_of(problems).empty());
    CHECK(document.root.find("name")->scalar == text);
    CHECK(find_path(document.root, "logging.trace")->scalar == text);
  }
}

TEST_CASE("write: an argument of several lines stays in its comment", "[recipe]") {
  Document document = read_text("max_steps: 1\n", "a.yaml");
  document.root.map[0].value.origin.argument = "max_steps=1\nseed: 99\r\x1b";
  const std::string text = written(Recipe{}, &document.root);
  CHECK_THAT(text, ContainsSubstring("# argument max_steps=1 seed: 99  \n"));
  CHECK(text_of({{document.root.map[0].value.origin, "a\nb"}}) == "argument max_steps=1 seed: 99  : a b");
}

TEST_CASE("write: text of any kind reads back as it was", "[recipe]") {
  for (const std::string text : {"no",     "null",         "~",    "1e-4",   "a: b", "a #b",     " a ",
                                 "a\nb\n", "\"q\" 'r' \\", "a:",   "-",      "*x",   "\x01\x7f", "\xC3\xA4",
                                 "{a}",    "a\tb",         "true", "cuda:0", "...",  "yes"}) {
    Recipe recipe;
    recipe.name = text;
    recipe.max_steps = 1;
    recipe.logging.trace = text;
    const Recipe again = read_again(written(recipe));
    CHECK(again.name == text);
    CHECK(again.logging.trace == text);
  }
}
