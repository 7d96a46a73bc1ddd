#include "base/error.h"
#include "base/fault.h"
#include "base/text.h"
#include "base/units.h"
#include "nn/module.h"
#include "profile/take.h"
#include "report/ledger.h"
#include "run/assemble.h"
#include "run/flops.h"
#include "run/output.h"
#include "run/run.h"
#include "run/run_dir.h"
#include "run/standard_output.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

namespace gputrain::run {
namespace {

// "layer1" of "layer1.0.conv1.weight".
std::vector<std::pair<std::string, std::int64_t>> parameters_by_part(const nn::Module& model) {
  std::vector<std::pair<std::string, std::int64_t>> parts;
  for (const auto& [name, value] : model.named_parameters()) {
    const std::string part = name.substr(0, name.find('.'));
    if (parts.empty() || parts.back().first != part) parts.emplace_back(part, 0);
    parts.back().second += value.numel();
  }
  return parts;
}

// "8.18 billion", "77.4 million", "71,168"
std::string operations(std::int64_t count) {
  const std::array<std::pair<double, const char*>, 3> units{
      {{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}}};
  for (const auto& [size, name] : units) {
    const double number = static_cast<double>(count) / size;
    if (number < 0.9995) continue;  // rounds to less than 1
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), number < 999.5 ? "%.3g %s" : "%.0f %s", number, name);
    return text.data();
  }
  return format_count(count);
}

// What a run holds beside activations and temporaries.
std::string lasting_memory(const Assembly& made) {
  const profile::Owners owners{*made.model, *made.optimizer, made.ema.get(), made.data};
  const nn::Batch sample = made.data.train->batch({0});
  const bool float32_sums =
      made.options.update.precision.weights && made.options.gradient_accumulation_steps > 1;
  const profile::Ledger ledger =
      profile::expected({owners, made.flat_buffers, sample, made.options.micro_batch_size, float32_sums});
  std::string text = concat("memory       ", format_bytes(profile::accounted(ledger)),
                            " beside activations and temporaries (memory.ledger measures all)\n");
  for (const std::string& line : report::class_lines(ledger)) text += line + "\n";
  return text;
}

std::string sizes(const Assembly& made, const recipe::Ema& ema) {
  const train::RunInfo& info = made.info;
  const std::int64_t per_epoch = train::steps_per_epoch(made.options, info.train_samples);
  std::string text = concat("parameters   ", format_count(info.parameters));
  if (info.frozen_parameters > 0) {
    text += concat(", of which ", format_count(info.parameters - info.frozen_parameters), " train and ",
                   format_count(info.frozen_parameters), " are frozen");
  }
  text += "\n";
  for (const auto& [part, count] : parameters_by_part(*made.model)) {
    text += concat("  ", part, std::string(part.size() < 11 ? 11 - part.size() : 1, ' '), format_count(count),
                   "\n");
  }
  text += concat("samples      ", format_count(info.train_samples), " to train on, ",
                 format_count(info.validation_samples), " to validate on\n");
  text += concat(
      "steps        ", format_count(per_epoch), " an epoch, ",
      info.total_steps ? format_count(*info.total_steps) + " in all" : "until max_time ends the run", "\n");
  text += concat("FLOPs        ",
                 operations(forward_flops(*made.model, made.data.train->batch({0}).input,
                                          made.options.update.precision)),
                 " a sample in the forward pass (a multiply-add is 2), ",
                 info.frozen_parameters > 0 ? "at most" : "about", " 3 times that in training\n");
  text += concat("disk         ", format_bytes(disk_bytes(*made.model, ema)),
                 ema.decay > 0 ? " for the weights and their averages" : " for the weights",
                 ", beside the logs\n");
  return text + lasting_memory(made);
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << "note: " << note << "\n";
}

}  // namespace

void check(const Request& request) {
  check_faults();
  Plan plan = read_plan(request.recipe, request.arguments);
  if (plan.root.kind != recipe::Node::Kind::kMap) refuse_problems(plan);  // there is nothing to look at
  resolve(plan, Purpose::kLook);
  const Plan as_written = plan;
  // A GPU may be busy with another run, and nothing here needs one.
  if (plan.recipe.device != "cpu") plan.recipe.memory.limit.reset();
  plan.recipe.device = "cpu";
  const std::filesystem::path path = plan.recipe.output_dir;
  std::optional<RunDir> folder;
  std::string in_the_way;
  const auto look_at_folder = [&](const Assembly&) {
    if (!plan.problems.empty())
      return;  // whether the run there is this one can be told of a whole recipe only
    try {
      folder.emplace(path, as_written, /*restart=*/false);
    } catch (const Error& error) {
      // The recipe may be good all the same.
      if (error.code() != ExitCode::kUsage) throw;
      in_the_way = error.what();
    }
  };
  const auto look_at_trace = [&](const Assembly&) { check_trace(plan.recipe.logging, path); };
  const auto look_at_space = [&](const Assembly& parts) {
    if (parts.model) check_space(*parts.model, plan.recipe.ema, path);
  };
  const Assembly made = assemble(plan, {look_at_folder, look_at_trace, look_at_space});
  to_stdout(as_written.resolved());
  print_notes(made.notices);
  if (!in_the_way.empty()) std::cerr << "note: a run would be refused: " << in_the_way << "\n";
  if (folder && folder->finished())
    std::cerr << "note: " << plan.recipe.output_dir << " holds this run, finished\n";
  std::cerr << sizes(made, plan.recipe.ema);
}

void print_resolved(const Request& request) {
  Plan plan = read_plan(request.recipe, request.arguments);
  resolve(plan, Purpose::kLook);
  refuse_problems(plan);
  to_stdout(plan.resolved());
  print_notes(plan.readings);
  print_notes(plan.notices);
}

}  // namespace gputrain::run
