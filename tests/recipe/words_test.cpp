#include "recipe/words.h"

#include "base/text.h"
#include "recipe/keys.h"
#include "recipe/overrides.h"
#include "recipe/read.h"
#include "recipe/recipe.h"
#include "support/catch.h"
#include "support/paths.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

using namespace gputrain::recipe;
using gputrain::concat;

namespace {

struct Translated {
  Node root;
  std::string problems;
  std::vector<std::string> notices;
};

Translated translated(const std::string& text) {
  Document document = read_text(text, "r.yaml");
  REQUIRE(text_of(document.problems).empty());
  Translated result{std::move(document.root), "", {}};
  std::vector<Problem> problems;
  translate_words(result.root, problems, result.notices);
  sort_by_position(problems);
  result.problems = text_of(problems);
  return result;
}

// A tree as text, its keys in alphabetical order.
std::string outline(const Node& node) {
  std::vector<std::string> parts;
  for (const Node& element : node.list) parts.push_back(outline(element));
  if (node.kind == Node::Kind::kList) return concat('[', gputrain::join(parts, ", "), ']');
  for (const auto& [key, value] : node.map) parts.push_back(concat(key.scalar, ": ", outline(value)));
  std::sort(parts.begin(), parts.end());
  if (node.kind == Node::Kind::kMap) return concat('{', gputrain::join(parts, ", "), '}');
  return node.kind == Node::Kind::kNull ? "~" : node.scalar;
}

std::string outline(const std::string& text) {
  return text.empty() ? "{}" : outline(read_text(text, "r.yaml").root);
}

std::string tree_of(const std::string& text) {
  const Translated result = translated(text);
  CHECK(result.problems.empty());
  return outline(result.root);
}

std::string notices_of(const std::string& text) {
  return gputrain::join(translated(text).notices, "\n");
}

std::string problems_of(const std::string& text) {
  return translated(text).problems;
}

// A row of the table in docs/other-tools.md.
struct DocRow {
  std::string tool;
  std::string word;
  std::string becomes;  // "": nothing
};

std::string unquoted(std::string cell) {
  const std::size_t first = cell.find('`');
  const std::size_t last = cell.rfind('`');
  return first == last ? "" : cell.substr(first + 1, last - first - 1);
}

std::vector<DocRow> doc_rows() {
  std::ifstream file(gputrain::testing::source_path() + "/docs/other-tools.md");
  std::vector<DocRow> rows;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::size_t> bars;
    for (std::size_t at = line.find('|'); at != std::string::npos; at = line.find('|', at + 1)) {
      bars.push_back(at);
    }
    if (bars.size() != 4 || line.find('`') == std::string::npos) continue;
    const auto cell = [&](std::size_t i) { return line.substr(bars[i] + 1, bars[i + 1] - bars[i] - 1); };
    rows.push_back({cell(0), unquoted(cell(1)), unquoted(cell(2))});
  }
  return rows;
}

// Whether a notice begins "read `a.b` as " or "read `a: {b: ".
bool is_about(const std::string& notice, const std::string& word) {
  std::string nested = word;
  for (std::size_t dot; (dot = nested.find('.')) != std::string::npos;) nested.replace(dot, 1, ": {");
  return notice.find(concat("read `", word, "` as ")) != std::string::npos ||
         notice.find(concat("read `", nested, ": ")) != std::string::npos;
}

// A word and how it is written within a component that has another name elsewhere.
std::vector<std::string> spellings(const std::string& word) {
  std::vector<std::string> all{word};
  for (const auto& [ours, theirs] : std::map<std::string, std::string>{
           {"lr_scheduler.", "scheduler."}, {"objective.", "loss."}, {"data.", "dataset."}}) {
    if (word.rfind(ours, 0) == 0) all.push_back(theirs + word.substr(ours.size()));
  }
  return all;
}

}  // namespace

TEST_CASE("words: every row of the documentation is translated as it says", "[recipe]") {
  const std::vector<DocRow> rows = doc_rows();
  REQUIRE(rows.size() > 50);
  for (const DocRow& row : rows) {
    CAPTURE(row.tool, row.word, row.becomes);
    const Translated result = translated(row.word);
    CHECK(result.problems.empty());
    CHECK(outline(result.root) == outline(row.becomes));
    CHECK(!result.notices.empty());
    for (const std::string& notice : result.notices) {
      CHECK_THAT(notice, Catch::Matchers::StartsWith("r.yaml:1:"));
    }
    Node again = result.root;
    std::vector<Problem> problems;
    std::vector<std::string> notices;
    translate_words(again, problems, notices);
    CHECK(text_of(problems).empty());
    CHECK(notices.empty());
    CHECK(outline(again) == outline(result.root));
  }
}

TEST_CASE("words: every word of the program is in the documentation", "[recipe]") {
  std::vector<std::string> notices;
  for (const DocRow& row : doc_rows()) {
    const Translated result = translated(row.word);
    notices.insert(notices.end(), result.notices.begin(), result.notices.end());
  }
  for (const auto& [word, key] : words_and_keys()) {
    CAPTURE(word);
    const std::vector<std::string> written = spellings(word);
    CHECK(std::any_of(notices.begin(), notices.end(), [&](const std::string& notice) {
      return std::any_of(written.begin(), written.end(),
                         [&](const std::string& spelling) { return is_about(notice, spelling); });
    }));
  }
}

TEST_CASE("words: a word is reported once, with its place and what it was read as", "[recipe]") {
  CHECK(notices_of("seed: 1\naccum_steps: 4\n") ==
        "r.yaml:2:1: read `accum_steps` as `gradient_accumulation_steps`");
  CHECK(notices_of("grad-accum-steps: 4\n") ==
        "r.yaml:1:1: read `grad_accum_steps` as `gradient_accumulation_steps`");
  CHECK(notices_of("precision: 16-mixed\n") ==
        "r.yaml:1:1: read `precision: 16-mixed` as `precision: fp16-mixed`");
  CHECK(notices_of("fp16: false\n") == "r.yaml:1:1: read `fp16: false` as nothing to set");
  CHECK(notices_of("optimizer: adamw_torch\n") ==
        "r.yaml:1:1: read `optimizer: adamw_torch` as `optimizer: {name: adamw}`");
  CHECK(notices_of("model: resnet50\n") == "r.yaml:1:1: read `model: resnet50` as `model: {name: resnet50}`");
  CHECK(notices_of("optimizer:\n  betas: [0.9, 0.95]\n") ==
        "r.yaml:2:3: read `optimizer: {betas: [0.9, 0.95]}` as `optimizer: {beta1: 0.9, beta2: 0.95}`");
  CHECK(notices_of("scheduler: {t_warmup: 9ba, alpha_f: 0}\n") ==
        "r.yaml:1:1: read `scheduler` as `lr_scheduler`\n"
        "r.yaml:1:13: read `scheduler: {t_warmup: 9ba}` as `lr_scheduler: {warmup_steps: 9}`\n"
        "r.yaml:1:28: read `scheduler.alpha_f` as `lr_scheduler.final_factor`");
  CHECK(notices_of("trainer:\n  max_epochs: 3\n") == "r.yaml:2:3: read `trainer.max_epochs` as `epochs`");
}

TEST_CASE("words: notices come in the order of the file", "[recipe]") {
  CHECK(notices_of("log_interval: 5\nbatch_size: 8\nmodel: mlp\n") ==
        "r.yaml:1:1: read `log_interval` as `logging.log_every`\n"
        "r.yaml:2:1: read `batch_size` as `micro_batch_size`\n"
        "r.yaml:3:1: read `model: mlp` as `model: {name: mlp}`");
}

TEST_CASE("words: this program's own recipes stay as they are", "[recipe]") {
  const std::string configs = gputrain::testing::source_path() + "/configs";
  std::size_t recipes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(configs)) {
    if (entry.path().extension() != ".yaml") continue;
    ++recipes;
    CAPTURE(entry.path().string());
    Document document = read_document(entry.path().string());
    REQUIRE(text_of(document.problems).empty());
    const std::string before = outline(document.root);
    std::vector<Problem> problems;
    std::vector<std::string> notices;
    translate_words(document.root, problems, notices);
    CHECK(text_of(problems).empty());
    CHECK(notices.empty());
    CHECK(outline(document.root) == before);
  }
  CHECK(recipes > 0);
}

TEST_CASE("words: own keys with unknown values, and keys at the wrong level, stay", "[recipe]") {
  for (const std::string text : {"momentum: 0.9",
                                 "weight_decay: 0.1",
                                 "num_classes: 10",
                                 "warmup_steps: 5",
                                 "precision: fp64",
                                 "precision: ~",
                                 "precision: [16]",
                                 "optimizer: {name: lion}",
                                 "optimizer: {name: [adamw_torch]}",
                                 "optimizer: name:sgd",
                                 "optimizer: [sgd]",
                                 "optimizer: ~",
                                 "model: {name: testing.linear}",
                                 "save_steps: 3",
                                 "trainer: 3",
                                 "trainer: []",
                                 "${a}: 1",
                                 "precision: ${env:P}",
                                 "optimizer: {name: '${env:O}', lr: '${env:LR}'}",
                                 "optimizer: ${env:O}"}) {
    CAPTURE(text);
    CHECK(tree_of(text) == outline(text));
    CHECK(notices_of(text).empty());
  }
}

TEST_CASE("words: keys and values keep the place where they were written", "[recipe]") {
  const Node root = translated("seed: 1\nlearning_rate: 0.5\nopt_betas: [0.9,\n  0.95]\n").root;
  CHECK(find_path(root, "optimizer")->origin.text() == "r.yaml:2:1");
  CHECK(find_path(root, "optimizer.lr")->origin.text() == "r.yaml:2:16");
  CHECK(find_path(root, "optimizer.beta2")->origin.text() == "r.yaml:4:3");
  CHECK(find_path(root, "optimizer")->map[0].key.origin.text() == "r.yaml:2:1");
  CHECK(find_path(root, "optimizer")->map[1].key.origin.text() == "r.yaml:3:1");
}

TEST_CASE("words: a Lightning configuration is read as a whole", "[recipe]") {
  CHECK(tree_of("seed_everything: 7\n"
                "trainer: {max_epochs: 3, max_steps: -1, precision: bf16-mixed, accelerator: gpu}\n"
                "model: {class_path: zoo.resnet50, init_args: {num_classes: 10}}\n"
                "optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 0.1, betas: [0.9, 0.99]}}\n") ==
        outline("seed: 7\nepochs: 3\nprecision: bf16-mixed\ndevice: cuda\n"
                "model: {name: resnet50, num_classes: 10}\n"
                "optimizer: {name: adamw, lr: 0.1, beta1: 0.9, beta2: 0.99}\n"));
}

TEST_CASE("words: a DeepSpeed configuration is read as a whole", "[recipe]") {
  CHECK(tree_of(
            "{\"train_batch_size\": 64, \"gradient_clipping\": 1.0, \"bf16\": {\"enabled\": true},\n"
            "\"fp16\": {\"enabled\": false},\n"
            "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-4, \"betas\": [0.9, 0.95]}}}\n") ==
        outline("global_batch_size: 64\nmax_grad_norm: 1.0\nprecision: bf16-true\n"
                "optimizer: {name: adamw, lr: 1e-4, beta1: 0.9, beta2: 0.95}\n"));
}

TEST_CASE("words: what stands beside words in another tool's map is refused by name", "[recipe]") {
  CHECK(problems_of("trainer:\n  max_epochs: 3\n  strategy: ddp\n") ==
        "r.yaml:3:3: trainer.strategy has no counterpart; docs/other-tools.md lists the words that are read");
  CHECK(problems_of("fp16: {enabled: true, loss_scale: 0}\n") ==
        "r.yaml:1:23: fp16.loss_scale has no counterpart; docs/other-tools.md lists the words that are read");
}

TEST_CASE("words: one key under two names is given twice", "[recipe]") {
  CHECK(problems_of("micro_batch_size: 8\nbatch_size: 8\n") ==
        "r.yaml:2:1: micro_batch_size is given twice, as micro_batch_size and as batch_size; the first is in "
        "line 1");
  CHECK(problems_of("batch_size: 8\nmicro_batch_size: 8\n") ==
        "r.yaml:2:1: micro_batch_size is given twice, as batch_size and as micro_batch_size; the first is in "
        "line 1");
  CHECK(problems_of("fp16: true\nseed: 1\nbf16: true\n") ==
        "r.yaml:3:1: precision is given twice, as fp16 and as bf16; the first is in line 1");
  CHECK(problems_of("optimizer:\n  lr: 1\n  init_args: {lr: 2}\n") ==
        "r.yaml:3:15: optimizer.lr is given twice, as optimizer.lr and as optimizer.init_args.lr; the first "
        "is in "
        "line 2");
  CHECK(problems_of("fp16: false\nbf16: true\n").empty());
}

TEST_CASE("words: values that cannot be translated are refused with what is expected", "[recipe]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"max_duration: 9tok",
        "r.yaml:1:15: max_duration is 9tok; expected epochs (10ep) or batches (1000ba); other units have no "
        "counterpart (read as in Composer)"},
       {"eval_interval: 5",
        "r.yaml:1:16: eval_interval is 5; expected epochs (1ep) or batches (100ba); other units have no "
        "counterpart (read as in Composer)"},
       {"scheduler: {t_warmup: 1ep}",
        "r.yaml:1:23: scheduler.t_warmup is 1ep; expected batches (100ba); other units have no "
        "counterpart "
        "(read as in Composer)"},
       {"fp16: maybe",
        "r.yaml:1:7: fp16 is maybe; expected true or false (read as in Hugging Face, Axolotl)"},
       {"fp16: [true]",
        "r.yaml:1:7: fp16 is a list; expected true or false (read as in Hugging Face, Axolotl)"},
       {"num_train_epochs: 2.5",
        "r.yaml:1:19: num_train_epochs is 2.5; expected a whole number (read as in Hugging Face)"},
       {"logging_steps: 0.1",
        "r.yaml:1:16: logging_steps is 0.1; expected a whole number (read as in Hugging Face, Axolotl)"},
       {"max_epochs: -2",
        "r.yaml:1:13: max_epochs is -2; expected a whole number, or -1 for no limit (read as in Lightning)"},
       {"val_check_interval: 1.5",
        "r.yaml:1:21: val_check_interval is 1.5; expected steps (100) or a part of an epoch (0.25) (read as "
        "in "
        "Lightning)"},
       {"evals_per_epoch: 0",
        "r.yaml:1:18: evals_per_epoch is 0; expected how often per epoch (4), from 1 to 1000000 (read as in "
        "Axolotl)"},
       {"check_val_every_n_epoch: x",
        "r.yaml:1:26: check_val_every_n_epoch is x; expected whole epochs (2) (read as in Lightning)"},
       {"trainer: {max_time: 01:02:03}",
        "r.yaml:1:21: trainer.max_time is 01:02:03; expected DD:HH:MM:SS (read as in Lightning)"},
       {"opt_betas: [0.9]", "r.yaml:1:12: opt_betas is a list; expected [beta1, beta2] (read as in timm)"},
       {"clip_mode: agc", "r.yaml:1:12: clip_mode is agc; expected norm (read as in timm)"},
       {"optim: {a: 1}", "r.yaml:1:8: optim is a map; expected a name (read as in Hugging Face)"},
       {"optimizer: {type: [a]}",
        "r.yaml:1:19: optimizer.type is a list; expected the path of a class (read as in DeepSpeed)"},
       {"optimizer: {params: 3}",
        "r.yaml:1:21: optimizer.params is 3; expected a map of keys (read as in DeepSpeed)"}}));
  CHECK(problems_of(text) == expected);
}

TEST_CASE("words: what is put in later is moved, but not translated", "[recipe]") {
  CHECK(tree_of("batch_size: ${env:B}\n") == outline("micro_batch_size: ${env:B}\n"));
  CHECK(problems_of("bf16: ${env:B}\n") ==
        "r.yaml:1:7: bf16 is ${env:B}; words are read before ${...} is put in; write precision in its place");
  CHECK(problems_of("opt_betas: [0.9, '${env:B}']\n") ==
        "r.yaml:1:12: opt_betas is a list; words are read before ${...} is put in; write optimizer.beta1 in "
        "its "
        "place");
}

TEST_CASE("words: a word has no place in what is not a map", "[recipe]") {
  CHECK(problems_of("validation: 5\neval_steps: 10\n") ==
        "r.yaml:2:1: eval_steps is read as validation.every, and validation in r.yaml:1:13 is not a map of "
        "keys");
  CHECK(tree_of("optimizer: ~\nlr: 1\n") == outline("optimizer: {lr: 1}\n"));
}

TEST_CASE("words: null values say nothing", "[recipe]") {
  CHECK(tree_of("fp16:\nbf16: ~\noptimizer: {init_args: ~}\nmax_duration: ~\n") == "{optimizer: {}}");
  CHECK(tree_of("validation_batch_size: ~\nopt_eps: ~\ndata: {batch_size: ~}\nrun_name: ~\nloss: ~\n") ==
        "{data: {}}");
  CHECK(notices_of("opt_eps: ~\n") == "r.yaml:1:1: read `opt_eps: null` as nothing to set");
}

TEST_CASE("words: null is kept for the keys that take it", "[recipe]") {
  CHECK(tree_of("clip_grad: ~\n") == "{max_grad_norm: ~}");
  CHECK(tree_of("data_dir: ~\n") == "{data: {path: ~}}");
  Recipe recipe;
  for (const Key& key : keys([&](Visitor& v) { describe(v, recipe); })) {
    for (const auto& [word, ours] : words_and_keys()) {
      if (ours != key.path || word == ours || word.find('.') != std::string::npos) continue;
      CAPTURE(word);
      const bool takes_any_value = find_path(translated(word + ": [3]\n").root, ours) != nullptr;
      const bool is_kept = find_path(translated(word + ": ~\n").root, ours) != nullptr;
      CHECK(is_kept == (takes_any_value && key.takes_null));
    }
  }
}

TEST_CASE("words: an empty map of another tool says nothing", "[recipe]") {
  const std::string wrapper = GENERATE(as<std::string>{}, "trainer", "algorithms", "fp16", "bf16");
  CHECK(tree_of(wrapper + ": {}\n") == "{}");
  CHECK(tree_of(wrapper + ": ~\n") == "{}");
  CHECK(notices_of(wrapper + ": {}\n") == concat("r.yaml:1:1: read `", wrapper, "` as nothing to set"));
}

TEST_CASE("words: optimizers with weight decay that is not multiplied by the learning rate are refused",
          "[recipe]") {
  const std::string expected =
      " is decoupled_adamw; its weight decay is not multiplied by lr; expected optimizer: {name: "
      "decoupled_adamw, weight_decay: 0}, or name: adamw with that weight_decay divided by lr (read as in ";
  CHECK(problems_of("optimizer: {name: decoupled_adamw, weight_decay: 1e-5}\n") ==
        concat("r.yaml:1:19: optimizer.name", expected, "Composer)"));
  CHECK(problems_of("optimizer: {name: decoupled_adamw}\n") ==
        concat("r.yaml:1:19: optimizer.name", expected, "Composer)"));
  CHECK(problems_of("optimizer: decoupled_adamw\n") ==
        concat("r.yaml:1:12: optimizer", expected, "Axolotl)"));
  CHECK(problems_of("optim: decoupled_adamw\nweight_decay: 0\noptimizer: {weight_decay: 0}\n") ==
        concat("r.yaml:1:8: optim", expected, "Hugging Face)"));
  CHECK(problems_of("optimizer: {name: decoupled_adamw, weight_decay: '${env:D}'}\n") ==
        concat("r.yaml:1:19: optimizer.name", expected, "Composer)"));
  CHECK(problems_of("optimizer: {name: decoupled_sgdw}\n") ==
        "r.yaml:1:19: optimizer.name is decoupled_sgdw; its weight decay is not multiplied by lr; expected "
        "optimizer: {name: decoupled_sgdw, weight_decay: 0}, or name: sgd with that weight_decay divided by "
        "lr (read as in Composer)");
  CHECK(tree_of("optimizer: {name: decoupled_adamw, weight_decay: 0.0}\n") ==
        outline("optimizer: {name: adamw, weight_decay: 0.0}\n"));
}

TEST_CASE("words: amp_dtype says which 16 bits amp means, in either order", "[recipe]") {
  CHECK(tree_of("amp: true\namp_dtype: float16\n") == "{precision: fp16-mixed}");
  CHECK(tree_of("amp: true\namp_dtype: bfloat16\n") == "{precision: bf16-mixed}");
  CHECK(tree_of("amp_dtype: bfloat16\namp: true\n") == "{precision: bf16-mixed}");
  CHECK(tree_of("amp: true\namp_dtype: ~\n") == "{precision: fp16-mixed}");
  CHECK(tree_of("amp: false\namp_dtype: float16\n") == "{precision: fp32}");
  CHECK(tree_of("amp: false\namp_dtype: bfloat16\n") == "{precision: fp32}");
  CHECK(tree_of("amp_dtype: float16\n") == "{}");
  CHECK(problems_of("amp: true\namp_dtype: float8\n") ==
        "r.yaml:2:12: amp_dtype is float8; expected float16 or bfloat16 (read as in timm)");
}

TEST_CASE("words: tf32 says nothing beside a word for 16 bits", "[recipe]") {
  CHECK(tree_of("tf32: true\nbf16: true\n") == "{precision: bf16-mixed}");
  CHECK(tree_of("fp16: true\ntf32: true\n") == "{precision: fp16-mixed}");
  CHECK(tree_of("tf32: true\nbfloat16: true\n") == "{precision: bf16-true}");
  CHECK(tree_of("mixed_precision: bf16\ntf32: true\n") == "{precision: bf16-mixed}");
  CHECK(tree_of("tf32: true\nbf16: false\nfp16: ~\nmixed_precision: 'no'\n") == "{precision: tf32}");
  CHECK(notices_of("tf32: true\nbf16: true\n") ==
        "r.yaml:1:1: read `tf32: true` as nothing to set\n"
        "r.yaml:2:1: read `bf16: true` as `precision: bf16-mixed`");
  CHECK(problems_of("precision: fp32\ntf32: true\n") ==
        "r.yaml:2:1: precision is given twice, as precision and as tf32; the first is in line 1");
}

TEST_CASE("words: Lightning's two intervals of validation are one, in either order", "[recipe]") {
  const auto [pair, every] = GENERATE(
      table<std::string, std::string>({{"val_check_interval: 1.0, check_val_every_n_epoch: 1", "1ep"},
                                       {"check_val_every_n_epoch: 3, val_check_interval: 1.0", "3ep"},
                                       {"val_check_interval: 0.25, check_val_every_n_epoch: 1", "0.25ep"},
                                       {"check_val_every_n_epoch: 1, val_check_interval: 1", "1"},
                                       {"val_check_interval: 100, check_val_every_n_epoch: ~", "100"},
                                       {"val_check_interval: 1.0, check_val_every_n_epoch: ~", "1ep"},
                                       {"val_check_interval: ~, check_val_every_n_epoch: 2", "2ep"}}));
  CAPTURE(pair);
  CHECK(tree_of(concat("trainer: {", pair, "}\n")) == concat("{validation: {every: ", every, "}}"));
  CHECK(tree_of(concat('{', pair, "}\n")) == concat("{validation: {every: ", every, "}}"));
}

TEST_CASE("words: validations within every second epoch alone are refused", "[recipe]") {
  CHECK(problems_of("val_check_interval: 0.25\ncheck_val_every_n_epoch: 2\n") ==
        "r.yaml:2:26: check_val_every_n_epoch is 2; expected 1 beside val_check_interval: 0.25 (read as in "
        "Lightning)");
}

TEST_CASE("words: the keys that a word may set are known without its value", "[recipe]") {
  using Keys = std::vector<std::string>;
  CHECK(our_keys("amp") == Keys{"precision"});
  CHECK(our_keys("trainer.max_epochs") == Keys{"epochs"});
  CHECK(our_keys("fp16.enabled") == Keys{"precision"});
  CHECK(our_keys("dataset") == Keys{"data"});
  CHECK(our_keys("scheduler.t_warmup") == Keys{"lr_scheduler.warmup_steps"});
  CHECK(our_keys("optimizer.init_args.lr") == Keys{"optimizer.lr"});
  CHECK(our_keys("optimizer.params.betas") == Keys{"optimizer.beta1", "optimizer.beta2"});
  CHECK(our_keys("opt_betas") == Keys{"optimizer.beta1", "optimizer.beta2"});
  CHECK(our_keys("opt") == Keys{"optimizer.name", "optimizer.nesterov"});
  CHECK(our_keys("max_duration") == Keys{"epochs", "max_steps"});
  for (const std::string path :
       {"seed", "optimizer", "optimizer.name", "momentum", "trainer", "model.init_args", "clip_mode", ""}) {
    CAPTURE(path);
    CHECK(our_keys(path) == Keys{path});
  }
}

TEST_CASE("words: every key that a word is about is one of the recipe or its components", "[recipe]") {
  Recipe recipe;
  std::vector<std::string> known;
  for (const Key& key : keys([&](Visitor& v) { describe(v, recipe); })) known.push_back(key.path);
  for (const auto& [word, key] : words_and_keys()) {
    CAPTURE(word, key);
    const std::string room = key.substr(0, key.find('.'));
    CHECK(std::find(known.begin(), known.end(), room) != known.end());
  }
}

TEST_CASE("words: a deletion is about all that the word may have set", "[recipe]") {
  const auto [argument, expected] = GENERATE(table<std::string, std::string>(
      {{"~amp", "{epochs: 2, optimizer: {beta1: 0.9, name: sgd}}"},
       {"~optimizer.betas", "{epochs: 2, optimizer: {name: sgd}, precision: tf32}"},
       {"~max-duration", "{optimizer: {beta1: 0.9, name: sgd}, precision: tf32}"}}));
  Node root = read_text("precision: tf32\nepochs: 2\noptimizer: {name: sgd, beta1: 0.9}\n", "r.yaml").root;
  std::vector<Problem> problems;
  std::vector<std::string> notices;
  apply_overrides(root, {argument}, {}, problems, notices);
  CHECK(text_of(problems).empty());
  CHECK(outline(root) == expected);
}

TEST_CASE("words: a deletion is reported as the keys that it is read as", "[recipe]") {
  Node root = read_text("seed: 1\n", "r.yaml").root;
  std::vector<Problem> problems;
  std::vector<std::string> notices;
  apply_overrides(root, {"~max-duration"}, {}, problems, notices);
  CHECK(notices ==
        std::vector<std::string>{"argument ~max-duration: read `max_duration` as `epochs` and `max_steps`"});
  CHECK(text_of(problems) == "argument ~max-duration: the recipe does not set epochs or max_steps");
}

TEST_CASE("words: arguments of the command line are translated with their origin", "[recipe]") {
  std::vector<Problem> problems;
  std::vector<std::string> notices;
  const Origin origin{"", 0, 0, "batch_size=8"};
  Node root = read_value("{batch_size: 8}", origin, problems);
  translate_words(root, problems, notices);
  CHECK(text_of(problems).empty());
  CHECK(notices ==
        std::vector<std::string>{"argument batch_size=8: read `batch_size` as `micro_batch_size`"});
  CHECK(root.find("micro_batch_size")->origin.text() == "argument batch_size=8");

  Node twice = read_value("{batch_size: 8, per_device_train_batch_size: 4}", origin, problems);
  translate_words(twice, problems, notices);
  CHECK(text_of(problems) ==
        "argument batch_size=8: micro_batch_size is given twice, as batch_size and as "
        "per_device_train_batch_size");
}
