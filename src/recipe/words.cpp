#include "recipe/words.h"

#include "base/text.h"
#include "recipe/paths.h"
#include "recipe/read.h"
#include "recipe/scalars.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace gputrain::recipe {
namespace {

using Kind = Node::Kind;

// One key of ours and its value, made from what was written.
struct Setting {
  std::string parent;  // path of the map it belongs into; "": the recipe
  Node key;
  Node value;
};

struct Converted {
  bool is_meant = true;           // false: the value is none that the row is about
  std::vector<Setting> settings;  // none: the word says nothing that is not so anyway
  std::string error;              // what was expected
};

struct Row;
using Convert = Converted (*)(const Row&, const Node& key, const Node& value);
// What the words of its own map make of a word; std::nullopt: nothing else than it says alone.
using Beside = std::optional<Converted> (*)(const Row&, const Entry& written, const Node& map);

// Words of a value (in small letters) and what they become; "" says nothing.
using Synonyms = std::vector<std::pair<std::string_view, std::string_view>>;

Converted same(const Row& row, const Node& key, const Node& value);

// One word of other tools.
struct Row {
  const char* tools;
  const char* word;  // path of the written key
  const char* key;   // path of ours
  Convert convert = same;
  Synonyms synonyms = {};
  Beside beside = nullptr;

  bool is_ours() const { return std::string_view(word) == key; }
};

Node scalar_at(const Origin& origin, std::string text) {
  Node node;
  node.kind = Kind::kScalar;
  node.origin = origin;
  node.scalar = std::move(text);
  return node;
}

std::string path_of(const Setting& setting) {
  return join_path(setting.parent, canonical(setting.key.scalar));
}

Setting setting(const std::string& path, const Node& key, Node value) {
  auto [parent, name] = split_path(path);
  return {std::move(parent), scalar_at(key.origin, std::move(name)), std::move(value)};
}

Converted not_meant() {
  return {false, {}, ""};
}

Converted refused(std::string expected) {
  return {true, {}, std::move(expected)};
}

Converted becomes(const Row& row, const Node& key, const Node& value, std::string text) {
  return {true, {setting(row.key, key, scalar_at(value.origin, std::move(text)))}, ""};
}

bool is_plain(const Node& value) {
  return value.kind == Kind::kScalar && !value.quoted;
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::optional<std::string_view> find_synonym(const Synonyms& synonyms, std::string_view text) {
  const std::string word = lower(text);
  const auto found =
      std::find_if(synonyms.begin(), synonyms.end(), [&](const auto& pair) { return pair.first == word; });
  return found != synonyms.end() ? std::optional<std::string_view>(found->second) : std::nullopt;
}

Converted same(const Row& row, const Node& key, const Node& value) {
  return {true, {setting(row.key, key, value)}, ""};
}

Converted synonym(const Row& row, const Node& key, const Node& value) {
  const bool is_scalar = value.kind == Kind::kScalar;
  if (const auto found = is_scalar ? find_synonym(row.synonyms, value.scalar) : std::nullopt) {
    return found->empty() ? Converted{} : becomes(row, key, value, std::string(*found));
  }
  if (row.is_ours()) return not_meant();
  std::vector<std::string> words;
  for (const auto& [word, meaning] : row.synonyms) words.emplace_back(word);
  return refused("expected " + join(words, ", ", " or "));
}

// The name of a component: what other tools call it, or the class that makes it ("torch.optim.AdamW").
std::string component_name(const Synonyms& synonyms, const std::string& text, bool is_class) {
  const std::string last = split_path(text).second;
  if (const auto found = find_synonym(synonyms, last)) return std::string(*found);
  return is_class ? last : text;
}

Converted name(const Row& row, const Node& key, const Node& value) {
  if (value.kind != Kind::kScalar) return row.is_ours() ? not_meant() : refused("expected a name");
  return becomes(row, key, value, component_name(row.synonyms, value.scalar, false));
}

Converted class_name(const Row& row, const Node& key, const Node& value) {
  if (value.kind != Kind::kScalar) return refused("expected the path of a class");
  return becomes(row, key, value, component_name(row.synonyms, value.scalar, true));
}

// A component: a map, or its name alone. What is neither is left to the reader of components.
Converted component(const Row& row, const Node& key, const Node& value) {
  const bool is_name =
      value.kind == Kind::kScalar && !value.scalar.empty() && with_missing_space(value.scalar).empty();
  if (!is_name) return same(row, key, value);
  std::string written = component_name(row.synonyms, value.scalar, false);
  return {true, {setting(concat(row.key, ".name"), key, scalar_at(value.origin, std::move(written)))}, ""};
}

// The weight decay of Composer's decoupled optimizers comes off the weights whole, ours times the learning
// rate. Where it is not given, or not here, ours would take its place unnoticed.
std::optional<Converted> decoupled(const Row& row, const Entry& written, const Node& map) {
  const std::string word = lower(split_path(written.value.scalar).second);
  const auto ours = find_synonym(row.synonyms, word);
  if (!ours || word.rfind("decoupled_", 0) != 0) return std::nullopt;
  const bool is_in_optimizer = std::string_view(row.word).find('.') != std::string_view::npos;
  const Node* decay = is_in_optimizer ? map.find("weight_decay") : nullptr;
  if (decay != nullptr && read_number(*decay, "", Range{0, 0}).value) return std::nullopt;
  return refused(concat("its weight decay is not multiplied by lr; expected optimizer: {name: ", word,
                        ", weight_decay: 0}, or name: ", *ours, " with that weight_decay divided by lr"));
}

// In timm, sgd and nesterov have Nesterov's momentum, and momentum is SGD without.
Converted timm_optimizer(const Row& row, const Node& key, const Node& value) {
  Converted converted = name(row, key, value);
  const std::string word = lower(value.scalar);
  if (word == "sgd" || word == "nesterov") {
    converted.settings.push_back(setting("optimizer.nesterov", key, scalar_at(value.origin, "true")));
  }
  return converted;
}

// The keys of a map within a component become the component's own.
Converted unwrapped(const Row& row, const Node&, const Node& value) {
  if (value.kind != Kind::kMap) return refused("expected a map of keys");
  Converted converted;
  for (const Entry& entry : value.map) converted.settings.push_back({row.key, entry.key, entry.value});
  return converted;
}

Converted betas(const Row&, const Node& key, const Node& value) {
  const auto is_scalar = [](const Node& node) { return node.kind == Kind::kScalar; };
  const bool is_pair = value.kind == Kind::kList && value.list.size() == 2 &&
                       std::all_of(value.list.begin(), value.list.end(), is_scalar);
  if (!is_pair) return refused("expected [beta1, beta2]");
  return {true,
          {setting("optimizer.beta1", key, value.list[0]), setting("optimizer.beta2", key, value.list[1])},
          ""};
}

// "10ep" -> {"10", "ep"}
std::pair<std::string, std::string> split_number(const Node& value) {
  const std::size_t end = std::min(value.scalar.find_first_not_of("0123456789"), value.scalar.size());
  return {value.scalar.substr(0, end), value.scalar.substr(end)};
}

// 3 and 3.0
std::optional<std::string> whole_number(const Node& value) {
  auto [digits, rest] = split_number(value);
  const bool is_whole =
      rest.empty() || (rest.front() == '.' && rest.find_first_not_of('0', 1) == std::string::npos);
  if (!is_plain(value) || digits.empty() || !is_whole) return std::nullopt;
  return std::move(digits);
}

Converted whole(const Row& row, const Node& key, const Node& value) {
  const std::optional<std::string> number = whole_number(value);
  return number ? becomes(row, key, value, *number) : refused("expected a whole number");
}

Converted whole_or_unlimited(const Row& row, const Node& key, const Node& value) {
  if (is_plain(value) && value.scalar == "-1") return {};
  const std::optional<std::string> number = whole_number(value);
  return number ? becomes(row, key, value, *number) : refused("expected a whole number, or -1 for no limit");
}

Converted composer_duration(const Row&, const Node& key, const Node& value) {
  const auto [count, unit] = split_number(value);
  if (!count.empty() && (unit == "ep" || unit.empty())) {
    return {true, {setting("epochs", key, scalar_at(value.origin, count))}, ""};
  }
  if (!count.empty() && unit == "ba") {
    return {true, {setting("max_steps", key, scalar_at(value.origin, count))}, ""};
  }
  return refused("expected epochs (10ep) or batches (1000ba); other units have no counterpart");
}

// A bare number means epochs in Composer and steps elsewhere, and is refused.
Converted composer_interval(const Row& row, const Node& key, const Node& value) {
  const auto [count, unit] = split_number(value);
  if (!count.empty() && unit == "ep") return becomes(row, key, value, count + "ep");
  if (!count.empty() && unit == "ba") return becomes(row, key, value, count);
  return refused("expected epochs (1ep) or batches (100ba); other units have no counterpart");
}

Converted composer_steps(const Row& row, const Node& key, const Node& value) {
  const auto [count, unit] = split_number(value);
  if (!count.empty() && unit == "ba") return becomes(row, key, value, count);
  return refused("expected batches (100ba); other units have no counterpart");
}

Converted composer_total_steps(const Row& row, const Node& key, const Node& value) {
  if (is_plain(value) && value.scalar == "1dur") return becomes(row, key, value, "auto");
  return composer_steps(row, key, value);
}

// 0.25 is a part of an epoch, 1.0 an epoch, 1 a step.
Converted steps_or_part_of_epoch(const Row& row, const Node& key, const Node& value) {
  if (is_plain(value) && is_digits(value.scalar)) return becomes(row, key, value, value.scalar);
  const Parsed<double> part = read_number(value, "", Range{0, 1, true});
  if (part.value) return becomes(row, key, value, shortest(*part.value) + "ep");
  return refused("expected steps (100) or a part of an epoch (0.25)");
}

Converted whole_epochs(const Row& row, const Node& key, const Node& value) {
  const std::optional<std::string> number = whole_number(value);
  return number ? becomes(row, key, value, *number + "ep") : refused("expected whole epochs (2)");
}

// Axolotl's whole numbers are GiB.
Converted gibibytes(const Row& row, const Node& key, const Node& value) {
  if (value.kind != Kind::kScalar) return refused("expected GiB (20) or bytes with a unit (20GiB)");
  const std::optional<std::string> number = whole_number(value);
  return becomes(row, key, value, number ? *number + "GiB" : value.scalar);
}

// 1.0 of Lightning's val_check_interval, where 1 is a batch.
bool is_whole_epoch(const Node& value) {
  return is_plain(value) && !is_digits(value.scalar) && read_number(value, "", Range{1, 1}).value;
}

bool is_set(const Node* value) {
  return value != nullptr && value->kind != Kind::kNull;
}

// Beside val_check_interval: 1.0, which is Lightning's default, check_val_every_n_epoch says it all.
std::optional<Converted> beside_epochs(const Row&, const Entry& written, const Node& map) {
  const bool says_nothing = is_set(map.find("check_val_every_n_epoch")) && is_whole_epoch(written.value);
  return says_nothing ? std::optional<Converted>(Converted{}) : std::nullopt;
}

// Beside any other val_check_interval, 1 alone has a counterpart: validations in every epoch.
std::optional<Converted> beside_interval(const Row&, const Entry& written, const Node& map) {
  const Node* interval = map.find("val_check_interval");
  const std::optional<std::string> epochs = whole_number(written.value);
  if (!is_set(interval) || is_whole_epoch(*interval) || !epochs) return std::nullopt;
  if (*epochs == "1") return Converted{};
  return refused(concat("expected 1 beside val_check_interval: ", show(*interval)));
}

// Whether the map has one of the words, with a value that turns something on.
template <std::size_t kCount>
bool has_any_on(const Node& map, const std::array<std::string_view, kCount>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    const Node* value = map.find(word);
    return value != nullptr && value->kind == Kind::kScalar && lower(value->scalar) != "false" &&
           lower(value->scalar) != "no";
  });
}

// timm's amp_dtype says which 16 bits amp means, and nothing alone.
std::optional<Converted> beside_amp_dtype(const Row& row, const Entry& written, const Node& map) {
  const Node* type = map.find("amp_dtype");
  const bool is_bfloat16 = type != nullptr && lower(type->scalar) == "bfloat16";
  if (!is_bfloat16 || lower(written.value.scalar) != "true") return std::nullopt;
  return becomes(row, written.key, written.value, "bf16-mixed");
}

// timm's model_ema_decay says how much, and nothing where model_ema is false.
std::optional<Converted> beside_model_ema_decay(const Row&, const Entry& written, const Node& map) {
  const bool is_said = lower(written.value.scalar) == "true" && is_set(map.find("model_ema_decay"));
  return is_said ? std::optional<Converted>(Converted{}) : std::nullopt;
}

std::optional<Converted> beside_model_ema(const Row&, const Entry&, const Node& map) {
  const Node* is_on = map.find("model_ema");
  const bool is_off = is_on != nullptr && lower(is_on->scalar) == "false";
  return is_off ? std::optional<Converted>(Converted{}) : std::nullopt;
}

// tf32 is about what is left in 32 bits where another word chooses 16.
std::optional<Converted> beside_16_bits(const Row&, const Entry& written, const Node& map) {
  constexpr std::array<std::string_view, 5> kWords{"fp16", "bf16", "float16", "bfloat16", "mixed_precision"};
  if (!has_any_on(map, kWords) || lower(written.value.scalar) != "true") return std::nullopt;
  return Converted{};
}

// mixed_precision: no leaves the choice to the words beside it.
std::optional<Converted> beside_choice(const Row&, const Entry& written, const Node& map) {
  constexpr std::array<std::string_view, 5> kWords{"fp16", "bf16", "float16", "bfloat16", "tf32"};
  if (lower(written.value.scalar) != "no" || !has_any_on(map, kWords)) return std::nullopt;
  return Converted{};
}

Converted times_per_epoch(const Row& row, const Node& key, const Node& value) {
  const Parsed<std::int64_t> times = read_integer(value, "", Range{1, 1e6});
  if (!times.value) return refused("expected how often per epoch (4), from 1 to 1000000");
  return becomes(row, key, value, shortest(1.0 / static_cast<double>(*times.value)) + "ep");
}

// Lightning's DD:HH:MM:SS.
Converted clock_time(const Row& row, const Node& key, const Node& value) {
  constexpr std::array<std::int64_t, 4> kSeconds{86400, 3600, 60, 1};
  std::int64_t seconds = 0;
  std::size_t parts = 0;
  bool is_clock = value.kind == Kind::kScalar;
  for (std::size_t start = 0; is_clock && start <= value.scalar.size(); ++parts) {
    const std::size_t end = std::min(value.scalar.find(':', start), value.scalar.size());
    const std::string part = value.scalar.substr(start, end - start);
    is_clock = parts < kSeconds.size() && is_digits(part) && part.size() <= 6;
    if (is_clock) seconds += kSeconds[parts] * std::stoll(part);
    start = end + 1;
  }
  if (!is_clock || parts != kSeconds.size()) return refused("expected DD:HH:MM:SS");
  return becomes(row, key, value, concat(seconds, 's'));
}

const Synonyms& optimizers() {
  static const Synonyms names{{"adamw", "adamw"},
                              {"adamw_torch", "adamw"},
                              {"adamw_torch_fused", "adamw"},
                              {"decoupled_adamw", "adamw"},
                              {"pytorch_adamw", "adamw"},
                              {"sgd", "sgd"},
                              {"decoupled_sgdw", "sgd"},
                              {"pytorch_sgd", "sgd"},
                              {"adam", "adam"},
                              {"lion", "lion"},
                              {"lion_32bit", "lion"},
                              {"lamb", "lamb"},
                              {"adafactor", "adafactor"},
                              {"muon", "muon"}};
  return names;
}

const Synonyms& timm_optimizers() {
  static const Synonyms names{{"adamw", "adamw"},         {"sgd", "sgd"},   {"nesterov", "sgd"},
                              {"momentum", "sgd"},        {"adam", "adam"}, {"lion", "lion"},
                              {"adafactor", "adafactor"}, {"lamb", "lamb"}, {"muon", "muon"}};
  return names;
}

const Synonyms& schedules() {
  static const Synonyms names{{"cosine_with_warmup", "cosine"},
                              {"get_cosine_schedule_with_warmup", "cosine"},
                              {"cosineannealinglr", "cosine"},
                              {"constant_with_warmup", "constant"},
                              {"linear_decay_with_warmup", "linear"},
                              {"steplr", "step"},
                              {"onecyclelr", "one_cycle"},
                              {"polynomiallr", "polynomial"},
                              {"warmup_stable_decay", "wsd"}};
  return names;
}

const Synonyms& objectives() {
  static const Synonyms names{{"crossentropyloss", "cross_entropy"}};
  return names;
}

const Synonyms& precisions() {
  static const Synonyms words{{"16", "fp16-mixed"},      {"16-mixed", "fp16-mixed"},
                              {"fp16", "fp16-mixed"},    {"amp_fp16", "fp16-mixed"},
                              {"bf16", "bf16-mixed"},    {"amp_bf16", "bf16-mixed"},
                              {"16-true", "fp16-true"},  {"32", "fp32"},
                              {"32-true", "fp32"},       {"bf16-mixed", "bf16-mixed"},
                              {"bf16-true", "bf16-true"}};
  return words;
}

const Synonyms& booleans() {
  static const Synonyms words{{"true", "true"}, {"false", "false"}};
  return words;
}

const Synonyms& checkpointing() {
  static const Synonyms words{{"true", "full"}, {"false", "none"}};
  return words;
}

const Synonyms& accelerators() {
  static const Synonyms words{{"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}, {"gpu", "cuda"}};
  return words;
}

// Every word, in the order of translation: components first get our name and form, so that the rows for their
// keys know one form alone.
const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"timm", "model", "model", component},
      {"others", "data", "data", component},
      {"others", "objective", "objective", component, objectives()},
      {"Axolotl", "optimizer", "optimizer", component, optimizers(), decoupled},
      {"Axolotl", "lr_scheduler", "lr_scheduler", component, schedules()},
      {"timm, torchtune", "dataset", "data", component},
      {"torchtune", "loss", "objective", component, objectives()},
      {"Composer, DeepSpeed", "scheduler", "lr_scheduler", component, schedules()},

      {"Hugging Face", "optim", "optimizer.name", name, optimizers(), decoupled},
      {"Hugging Face", "lr_scheduler_type", "lr_scheduler.name", name, schedules()},
      {"timm", "opt", "optimizer.name", timm_optimizer, timm_optimizers()},
      {"timm", "sched", "lr_scheduler.name", name, schedules()},

      {"Lightning", "model.class_path", "model.name", class_name},
      {"Lightning", "data.class_path", "data.name", class_name},
      {"Lightning", "optimizer.class_path", "optimizer.name", class_name, optimizers(), decoupled},
      {"Lightning", "lr_scheduler.class_path", "lr_scheduler.name", class_name, schedules()},
      {"torchtune", "model._component_", "model.name", class_name},
      {"torchtune", "data._component_", "data.name", class_name},
      {"torchtune", "objective._component_", "objective.name", class_name, objectives()},
      {"torchtune", "optimizer._component_", "optimizer.name", class_name, optimizers(), decoupled},
      {"torchtune", "lr_scheduler._component_", "lr_scheduler.name", class_name, schedules()},
      {"DeepSpeed", "optimizer.type", "optimizer.name", class_name, optimizers(), decoupled},
      {"DeepSpeed", "lr_scheduler.type", "lr_scheduler.name", class_name, schedules()},
      {"Composer", "optimizer.name", "optimizer.name", name, optimizers(), decoupled},
      {"Composer", "lr_scheduler.name", "lr_scheduler.name", name, schedules()},
      {"Lightning", "model.init_args", "model", unwrapped},
      {"Lightning", "data.init_args", "data", unwrapped},
      {"Lightning", "optimizer.init_args", "optimizer", unwrapped},
      {"Lightning", "lr_scheduler.init_args", "lr_scheduler", unwrapped},
      {"DeepSpeed", "optimizer.params", "optimizer", unwrapped},
      {"DeepSpeed", "lr_scheduler.params", "lr_scheduler", unwrapped},

      {"Hugging Face, Axolotl", "learning_rate", "optimizer.lr"},
      {"timm", "lr", "optimizer.lr"},
      {"Lightning", "optimizer.learning_rate", "optimizer.lr"},
      {"Composer, DeepSpeed, Lightning, torchtune", "optimizer.betas", "optimizer.beta1", betas},
      {"Hugging Face, Axolotl", "adam_beta1", "optimizer.beta1"},
      {"Hugging Face, Axolotl", "adam_beta2", "optimizer.beta2"},
      {"Hugging Face, Axolotl", "adam_epsilon", "optimizer.eps"},
      {"timm", "opt_betas", "optimizer.beta1", betas},
      {"timm", "opt_eps", "optimizer.eps"},

      {"torchtune", "lr_scheduler.num_warmup_steps", "lr_scheduler.warmup_steps"},
      {"torchtune", "lr_scheduler.num_training_steps", "lr_scheduler.total_steps"},
      {"DeepSpeed", "lr_scheduler.warmup_num_steps", "lr_scheduler.warmup_steps"},
      {"DeepSpeed", "lr_scheduler.total_num_steps", "lr_scheduler.total_steps"},
      {"Composer", "lr_scheduler.t_warmup", "lr_scheduler.warmup_steps", composer_steps},
      {"Composer", "lr_scheduler.t_max", "lr_scheduler.total_steps", composer_total_steps},
      {"Composer", "lr_scheduler.alpha_f", "lr_scheduler.final_factor"},
      {"Axolotl", "cosine_min_lr_ratio", "lr_scheduler.final_factor"},
      {"timm", "decay_rate", "lr_scheduler.gamma"},
      {"timm", "decay_epochs", "lr_scheduler.every", whole_epochs},

      {"timm, torchtune", "batch_size", "micro_batch_size"},
      {"Lightning", "data.batch_size", "micro_batch_size"},
      {"Hugging Face", "per_device_train_batch_size", "micro_batch_size"},
      {"Composer", "device_train_microbatch_size", "micro_batch_size"},
      {"DeepSpeed", "train_micro_batch_size_per_gpu", "micro_batch_size"},
      {"Composer", "global_train_batch_size", "global_batch_size"},
      {"DeepSpeed", "train_batch_size", "global_batch_size"},
      {"timm", "grad_accum_steps", "gradient_accumulation_steps"},
      {"others", "accum_steps", "gradient_accumulation_steps"},
      {"Lightning", "accumulate_grad_batches", "gradient_accumulation_steps"},
      {"Lightning", "trainer.accumulate_grad_batches", "gradient_accumulation_steps"},
      {"timm", "validation_batch_size", "validation.micro_batch_size"},
      {"torchtune", "batch_size_val", "validation.micro_batch_size"},
      {"Hugging Face", "per_device_eval_batch_size", "validation.micro_batch_size"},
      {"Axolotl", "eval_batch_size", "validation.micro_batch_size"},
      {"Composer", "device_eval_batch_size", "validation.micro_batch_size"},

      {"Hugging Face", "num_train_epochs", "epochs", whole},
      {"Axolotl", "num_epochs", "epochs", whole},
      {"Lightning", "max_epochs", "epochs", whole_or_unlimited},
      {"Lightning", "trainer.max_epochs", "epochs", whole_or_unlimited},
      {"Lightning", "trainer.max_steps", "max_steps", whole_or_unlimited},
      {"Lightning", "trainer.max_time", "max_time", clock_time},
      {"Composer", "max_duration", "epochs", composer_duration},

      {"Composer, Lightning", "precision", "precision", synonym, precisions()},
      {"Lightning", "trainer.precision", "precision", synonym, precisions()},
      {"Hugging Face",
       "mixed_precision",
       "precision",
       synonym,
       {{"fp16", "fp16-mixed"}, {"bf16", "bf16-mixed"}, {"no", "fp32"}},
       beside_choice},
      {"timm", "amp", "precision", synonym, {{"true", "fp16-mixed"}, {"false", "fp32"}}, beside_amp_dtype},
      {"timm", "amp_dtype", "precision", synonym, {{"float16", ""}, {"bfloat16", ""}}},
      {"DeepSpeed", "fp16.enabled", "precision", synonym, {{"true", "fp16-true"}, {"false", ""}}},
      {"DeepSpeed", "bf16.enabled", "precision", synonym, {{"true", "bf16-true"}, {"false", ""}}},
      {"Hugging Face, Axolotl", "fp16", "precision", synonym, {{"true", "fp16-mixed"}, {"false", ""}}},
      {"Hugging Face, Axolotl",
       "bf16",
       "precision",
       synonym,
       {{"true", "bf16-mixed"}, {"false", ""}, {"auto", "auto"}, {"full", "bf16-true"}}},
      {"Hugging Face, Axolotl",
       "tf32",
       "precision",
       synonym,
       {{"true", "tf32"}, {"false", ""}},
       beside_16_bits},
      {"Axolotl", "float16", "precision", synonym, {{"true", "fp16-true"}, {"false", ""}}},
      {"Axolotl", "bfloat16", "precision", synonym, {{"true", "bf16-true"}, {"false", ""}}},
      {"torchtune",
       "dtype",
       "precision",
       synonym,
       {{"fp32", "fp32"}, {"fp16", "fp16-true"}, {"bf16", "bf16-true"}}},

      {"Hugging Face, Axolotl", "gradient_checkpointing", "activation_checkpointing.mode", synonym,
       checkpointing()},
      {"timm", "grad_checkpointing", "activation_checkpointing.mode", synonym, checkpointing()},
      {"torchtune", "enable_activation_checkpointing", "activation_checkpointing.mode", synonym,
       checkpointing()},

      {"timm", "clip_grad", "max_grad_norm"},
      {"timm", "clip_mode", "max_grad_norm", synonym, {{"norm", ""}}},
      {"torchtune", "clip_grad_norm", "max_grad_norm"},
      {"DeepSpeed", "gradient_clipping", "max_grad_norm"},
      {"Lightning", "gradient_clip_val", "max_grad_norm"},
      {"Lightning", "trainer.gradient_clip_val", "max_grad_norm"},
      {"Lightning", "gradient_clip_algorithm", "max_grad_norm", synonym, {{"norm", ""}}},
      {"Lightning", "trainer.gradient_clip_algorithm", "max_grad_norm", synonym, {{"norm", ""}}},
      {"Composer", "algorithms.gradient_clipping.clipping_threshold", "max_grad_norm"},
      {"Composer", "algorithms.gradient_clipping.clipping_type", "max_grad_norm", synonym, {{"norm", ""}}},

      {"others", "ema_decay", "ema.decay"},
      {"timm", "model_ema_decay", "ema.decay", same, {}, beside_model_ema},
      {"timm",
       "model_ema",
       "ema.decay",
       synonym,
       {{"true", "0.9998"}, {"false", "0"}},
       beside_model_ema_decay},
      {"others", "freeze_layers", "freeze"},
      {"Hugging Face, Axolotl", "early_stopping_patience", "early_stopping.patience"},
      {"Hugging Face", "early_stopping_threshold", "early_stopping.min_delta"},

      {"timm", "smoothing", "objective.label_smoothing"},
      {"Hugging Face", "label_smoothing_factor", "objective.label_smoothing"},
      {"timm", "data_dir", "data.path"},

      {"Lightning", "val_check_interval", "validation.every", steps_or_part_of_epoch, {}, beside_epochs},
      {"Lightning",
       "trainer.val_check_interval",
       "validation.every",
       steps_or_part_of_epoch,
       {},
       beside_epochs},
      {"Lightning", "check_val_every_n_epoch", "validation.every", whole_epochs, {}, beside_interval},
      {"Lightning", "trainer.check_val_every_n_epoch", "validation.every", whole_epochs, {}, beside_interval},
      {"Hugging Face, Axolotl", "eval_steps", "validation.every", whole},
      {"Hugging Face", "eval_strategy", "validation.every", synonym, {{"epoch", "1ep"}, {"steps", ""}}},
      {"Hugging Face", "evaluation_strategy", "validation.every", synonym, {{"epoch", "1ep"}, {"steps", ""}}},
      {"Axolotl", "evals_per_epoch", "validation.every", times_per_epoch},
      {"torchtune", "run_val_every_n_steps", "validation.every", whole},
      {"Composer", "eval_interval", "validation.every", composer_interval},

      {"Lightning, torchtune", "log_every_n_steps", "logging.log_every"},
      {"Lightning", "trainer.log_every_n_steps", "logging.log_every"},
      {"Hugging Face, Axolotl", "logging_steps", "logging.log_every", whole},
      {"timm", "log_interval", "logging.log_every"},
      {"DeepSpeed", "steps_per_print", "logging.log_every"},
      {"Lightning", "trainer.enable_progress_bar", "logging.progress", synonym, booleans()},
      {"Hugging Face", "disable_tqdm", "logging.progress", synonym, {{"true", "false"}, {"false", "true"}}},

      {"Lightning", "seed_everything", "seed", whole},
      {"Lightning", "accelerator", "device", synonym, accelerators()},
      {"Lightning", "trainer.accelerator", "device", synonym, accelerators()},
      {"Hugging Face", "use_cpu", "device", synonym, {{"true", "cpu"}, {"false", ""}}},
      {"Hugging Face, Composer", "run_name", "name"},
      {"timm", "experiment", "name"},
      {"Lightning", "trainer.deterministic", "deterministic", synonym, booleans()},
      {"Lightning", "trainer.benchmark", "cuda.cudnn_benchmark", synonym, booleans()},
      {"Axolotl", "gpu_memory_limit", "memory.limit", gibibytes},
      {"Hugging Face", "torch_empty_cache_steps", "cuda.empty_cache", synonym, {{"1", "every_step"}}},
  };
  return all;
}

// Maps of other tools of which no key stays where it is.
bool is_wrapper(const std::string& path) {
  constexpr std::array<std::string_view, 4> kWrappers{"trainer", "algorithms", "fp16", "bf16"};
  return std::find(kWrappers.begin(), kWrappers.end(), path) != kWrappers.end();
}

bool holds_substitution(const Node& node) {
  return node.scalar.find("${") != std::string::npos ||
         std::any_of(node.list.begin(), node.list.end(), holds_substitution) ||
         std::any_of(node.map.begin(), node.map.end(),
                     [](const Entry& entry) { return holds_substitution(entry.value); });
}

// "{a: 1, b: [2, 3]}"
std::string flow(const Node& node) {
  std::vector<std::string> parts;
  if (node.kind == Kind::kList) {
    for (const Node& element : node.list) parts.push_back(flow(element));
    return concat('[', join(parts, ", "), ']');
  }
  if (node.kind == Kind::kMap) {
    for (const auto& [key, value] : node.map) parts.push_back(concat(key.scalar, ": ", flow(value)));
    return concat('{', join(parts, ", "), '}');
  }
  return show(node);
}

// "optimizer: {beta1: 0.9, beta2: 0.95}", for settings of one map.
std::string snippet(const std::vector<Setting>& settings) {
  std::vector<std::string> entries;
  for (const Setting& made : settings) entries.push_back(concat(made.key.scalar, ": ", flow(made.value)));
  std::string text = join(entries, ", ");
  for (std::string parent = settings.front().parent; !parent.empty();) {
    auto [outer, last] = split_path(parent);
    text = concat(last, ": {", text, '}');
    parent = std::move(outer);
  }
  return text;
}

// Whether the value itself is handed on, so that ${...} in it may be put in later.
bool keeps_value(const Row& row, const Node& value) {
  return row.convert == same || value.kind == Kind::kMap;
}

// Keys of ours that mean something by null, and have words whose values are taken as they are.
bool takes_null(std::string_view key) {
  return key == "max_grad_norm" || key == "data.path" || key == "early_stopping.patience";
}

Converted convert(const Row& row, const Entry& written, const Node& map) {
  if (written.value.kind == Kind::kNull) {
    if (row.is_ours()) return not_meant();
    if (row.convert != same || !takes_null(row.key)) return {};
  }
  const auto found = row.beside != nullptr ? row.beside(row, written, map) : std::nullopt;
  return found ? *found : row.convert(row, written.key, written.value);
}

bool is_unchanged(const Row& row, const Entry& written, const Converted& converted) {
  if (!row.is_ours() || converted.settings.size() != 1) return false;
  const Setting& made = converted.settings.front();
  return path_of(made) == row.word && made.value.scalar == written.value.scalar;
}

template <class Map>  // Node or const Node
auto find_entry(Map& map, const std::string& key) {
  return std::find_if(map.map.begin(), map.map.end(),
                      [&](const Entry& entry) { return canonical(entry.key.scalar) == key; });
}

class Translator {
 public:
  Translator(Node& root, const Node& beside, std::vector<Problem>& problems)
      : root_(root), beside_(beside), problems_(problems) {}

  void apply(const Row& row) {
    const std::optional<Entry> written = find(row.word);
    if (!written || (written->value.kind == Kind::kMap && is_wrapper(row.word))) return;
    const bool is_late = !keeps_value(row, written->value) && holds_substitution(written->value);
    if (is_late && row.is_ours()) return;
    const Converted converted = is_late ? Converted{} : convert(row, *written, map_of(row.word));
    if (!converted.is_meant || is_unchanged(row, *written, converted)) return;
    erase(row.word);
    if (is_late) {
      refuse(row, written->value,
             concat("words are read before ${...} is put in; write ", row.key, " in its place"));
    } else if (!converted.error.empty()) {
      refuse(row, written->value, concat(converted.error, " (read as in ", row.tools, ')'));
    } else if (place(row, *written, converted.settings)) {
      add_notice(row, *written, converted.settings);
    }
  }

  // What is left in the maps of other tools, key by key; the maps that are empty say nothing.
  void settle_rest() {
    const auto is_rest = [](const Entry& entry) {
      const bool is_map = entry.value.kind == Kind::kMap || entry.value.kind == Kind::kNull;
      return is_map && is_wrapper(canonical(entry.key.scalar));
    };
    for (const Entry& wrapper : root_.map) {
      if (!is_rest(wrapper)) continue;
      if (wrapper.value.map.empty()) {
        notices_.push_back({wrapper.key.origin, concat("read `", wrapper.key.scalar, "` as nothing to set")});
      }
      for (const auto& [key, value] : wrapper.value.map) {
        problems_.push_back(
            {key.origin, concat(wrapper.key.scalar, '.', key.scalar,
                                " has no counterpart; docs/other-tools.md lists the words that are read")});
      }
    }
    root_.map.erase(std::remove_if(root_.map.begin(), root_.map.end(), is_rest), root_.map.end());
  }

  // By position.
  std::vector<Problem> take_notices() {
    sort_by_position(notices_);
    return std::move(notices_);
  }

 private:
  // How and where a key of ours was written.
  struct Source {
    std::string word;
    Origin origin;
  };

  // The map at `path`, made where nothing is; nullptr where something else is.
  Node* map_at(const std::string& path, const Origin& origin) {
    if (path.empty()) return &root_;
    const auto [parent, key] = split_path(path);
    Node* outer = map_at(parent, origin);
    if (outer == nullptr) return nullptr;
    if (outer->find(key) == nullptr) outer->map.push_back({scalar_at(origin, key), Node{}});
    Node* map = outer->find(key);
    if (map->kind == Kind::kNull) {
      map->kind = Kind::kMap;
      map->origin = origin;
    }
    return map->kind == Kind::kMap ? map : nullptr;
  }

  std::optional<Entry> find(const std::string& path) const {
    const auto [parent, key] = split_path(path);
    const Node* map = find_path(root_, parent);
    if (map == nullptr) return std::nullopt;
    const auto found = find_entry(*map, key);
    return found != map->map.end() ? std::optional<Entry>(*found) : std::nullopt;
  }

  // The map that the word at `path` stands in, as it was written.
  const Node& map_of(const std::string& path) const {
    static const Node kNothing;
    const Node* map = find_path(beside_, split_path(path).first);
    return map != nullptr ? *map : kNothing;
  }

  // Maps of other tools that are empty then go too.
  void erase(const std::string& path) {
    const auto [parent, key] = split_path(path);
    Node& map = *map_at(parent, {});
    map.map.erase(find_entry(map, key));
    if (map.map.empty() && is_wrapper(parent.substr(0, parent.find('.')))) erase(parent);
  }

  void refuse(const Row& row, const Node& value, const std::string& text) {
    problems_.push_back({value.origin, concat(written_path(row.word), " is ", show(value), "; ", text)});
  }

  // Whether all settings found their place.
  bool place(const Row& row, const Entry& written, const std::vector<Setting>& settings) {
    bool is_placed = true;
    for (const Setting& made : settings) {
      const std::string key = canonical(made.key.scalar);
      const std::string path = path_of(made);
      const std::string written_word = written_path(row.word);
      const std::string word = row.convert == unwrapped ? concat(written_word, '.', key) : written_word;
      Node* map = map_at(made.parent, written.key.origin);
      if (map == nullptr) {
        const Origin place = origin_of(root_, made.parent);
        problems_.push_back({made.key.origin, concat(word, " is read as ", path, ", and ", made.parent,
                                                     " in ", place.text(), " is not a map of keys")});
        is_placed = false;
      } else if (const auto other = find_entry(*map, key); other != map->map.end()) {
        refuse_second(path, {word, made.key.origin}, {word_of(path), other->key.origin});
        is_placed = false;
      } else {
        map->map.push_back({made.key, made.value});
        words_[path] = word;
      }
    }
    return is_placed;
  }

  void refuse_second(const std::string& path, const Source& a, const Source& b) {
    const bool a_is_first =
        std::tie(a.origin.line, a.origin.column) < std::tie(b.origin.line, b.origin.column);
    const Source& first = a_is_first ? a : b;
    const Source& second = a_is_first ? b : a;
    const std::string where =
        first.origin.line > 0 ? concat("; the first is in line ", first.origin.line) : "";
    problems_.push_back(
        {second.origin, concat(path, " is given twice, as ", first.word, " and as ", second.word, where)});
  }

  // How the key of ours at `path` was written.
  std::string word_of(const std::string& path) const {
    const auto found = words_.find(path);
    return found != words_.end() ? found->second : path;
  }

  // `path` with the name that the component it is in had: "scheduler.t_warmup" for lr_scheduler.t_warmup.
  std::string written_path(const std::string& path) const {
    const std::size_t dot = path.find('.');
    return dot == std::string::npos ? path : word_of(path.substr(0, dot)) + path.substr(dot);
  }

  void add_notice(const Row& row, const Entry& written, const std::vector<Setting>& settings) {
    const std::string word = written_path(row.word);
    std::string text;
    if (row.convert == unwrapped || is_moved(row, written.value, settings)) {
      text = concat("read `", word, "` as `", row.key, '`');
    } else {
      const std::string made = settings.empty() ? "nothing to set" : concat('`', snippet(settings), '`');
      text = concat("read `", snippet({setting(word, written.key, written.value)}), "` as ", made);
    }
    notices_.push_back({written.key.origin, std::move(text)});
  }

  // Whether the key alone is another one.
  static bool is_moved(const Row& row, const Node& value, const std::vector<Setting>& settings) {
    if (settings.size() != 1 || path_of(settings.front()) != row.key) return false;
    return keeps_value(row, value) || flow(settings.front().value) == flow(value);
  }

  Node& root_;
  const Node& beside_;  // the root, or more of it, as it was written
  std::vector<Problem>& problems_;
  std::vector<Problem> notices_;
  std::map<std::string, std::string> words_;  // by path of ours, where it was set from another word
};

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Whether no value of the word sets anything.
bool says_nothing(const Row& row) {
  return row.convert == synonym && std::all_of(row.synonyms.begin(), row.synonyms.end(),
                                               [](const auto& pair) { return pair.second.empty(); });
}

// All that the word may set.
std::vector<std::string> keys_of(const Row& row) {
  if (row.convert == betas) return {row.key, "optimizer.beta2"};
  if (row.convert == composer_duration) return {row.key, "max_steps"};
  if (row.convert == timm_optimizer) return {row.key, "optimizer.nesterov"};
  return {row.key};
}

}  // namespace

void translate_words(Node& root, std::vector<Problem>& problems, std::vector<std::string>& notices) {
  const Node beside = root;
  translate_words(root, beside, problems, notices);
}

void translate_words(Node& root, const Node& beside, std::vector<Problem>& problems,
                     std::vector<std::string>& notices) {
  Translator translator(root, beside, problems);
  for (const Row& row : rows()) translator.apply(row);
  translator.settle_rest();
  for (const Problem& notice : translator.take_notices()) notices.push_back(text_of({notice}));
}

std::vector<std::string> our_keys(std::string path) {
  for (const Row& row : rows()) {
    const bool is_map = row.convert == component || row.convert == unwrapped;
    if (is_map && starts_with(path, concat(row.word, '.'))) {
      path.replace(0, std::string_view(row.word).size(), row.key);
    } else if (path == row.word && row.convert == component) {
      path = row.key;
    } else if (path == row.word && !is_map && !says_nothing(row)) {
      return keys_of(row);
    }
  }
  return {path};
}

std::vector<std::pair<std::string, std::string>> words_and_keys() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Row& row : rows()) pairs.emplace_back(row.word, row.key);
  return pairs;
}

}  // namespace gputrain::recipe
