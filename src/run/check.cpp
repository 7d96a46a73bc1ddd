#include "base/error.h"
#include "base/fault.h"
#include "base/text.h"
#include "base/units.h"
#include "run/assemble.h"
#include "run/flops.h"
#include "run/run.h"
#include "run/run_dir.h"
#include "run/standard_output.h"

#include <array>
#include <cstdio>
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

// "8.18 billion", "77.4 million"
std::string operations(std::int64_t count) {
  std::array<char, 32> text{};
  const bool is_large = count >= 1'000'000'000;
  std::snprintf(text.data(), text.size(), is_large ? "%.3g billion" : "%.3g million",
                static_cast<double>(count) / (is_large ? 1e9 : 1e6));
  return text.data();
}

std::string sizes(const Assembly& made) {
  const train::RunInfo& info = made.info;
  const std::int64_t per_epoch = train::steps_per_epoch(made.options, info.train_samples);
  std::string text = concat("parameters   ", format_count(info.parameters), "\n");
  for (const auto& [part, count] : parameters_by_part(*made.model)) {
    text += concat("  ", part, std::string(part.size() < 11 ? 11 - part.size() : 1, ' '), format_count(count),
                   "\n");
  }
  text += concat("samples      ", format_count(info.train_samples), " to train on, ",
                 format_count(info.validation_samples), " to validate on\n");
  text += concat(
      "steps        ", format_count(per_epoch), " an epoch, ",
      info.total_steps ? format_count(*info.total_steps) + " in all" : "until max_time ends the run", "\n");
  text += concat("FLOPs        ", operations(forward_flops(*made.model, made.data.train->batch({0}).input)),
                 " a sample in the forward pass (a multiply-add is 2), about 3 times that in training\n");
  text += concat("disk         ", format_bytes(weights_bytes(*made.model)),
                 " for the weights, beside the logs\n");
  return text;
}

}  // namespace

void check(const Request& request) {
  check_faults();
  Plan plan = read_plan(request.recipe, request.arguments);
  resolve(plan);
  std::optional<RunDir> folder;
  if (plan.problems.empty()) folder.emplace(plan.recipe.output_dir, plan, request.restart);
  const std::string resolved = plan.problems.empty() ? plan.resolved() : "";
  // A GPU may be busy with another run, and nothing here needs one.
  plan.recipe.device = "cpu";
  const Assembly made = assemble(plan);
  to_stdout(resolved);
  for (const std::string& notice : made.notices) std::cerr << "note: " << notice << "\n";
  if (folder->finished()) std::cerr << "note: " << plan.recipe.output_dir << " holds this run, finished\n";
  std::cerr << sizes(made);
}

void print_resolved(const Request& request) {
  Plan plan = read_plan(request.recipe, request.arguments);
  resolve(plan);
  refuse_problems(plan);
  to_stdout(plan.resolved());
  for (const std::string& notice : plan.notices) std::cerr << "note: " << notice << "\n";
}

}  // namespace gputrain::run
