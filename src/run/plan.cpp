#include "run/plan.h"

#include "base/error.h"
#include "recipe/write.h"

namespace gputrain::run {
namespace {

// "optimizer.momentum" and every other key of every component, for hints at keys in the wrong place.
std::vector<std::string> all_component_keys() {
  std::vector<std::string> known;
  for (const auto& keys : {recipe::component_keys(models::all_models(), "model"),
                           recipe::component_keys(data::all_data_sets(), "data"),
                           recipe::component_keys(objectives::all_objectives(), "objective"),
                           recipe::component_keys(optim::all_optimizers(), "optimizer"),
                           recipe::component_keys(optim::all_schedules(), "lr_scheduler")}) {
    known.insert(known.end(), keys.begin(), keys.end());
  }
  return known;
}

[[noreturn]] void throw_problems(const std::string& path, std::vector<recipe::Problem> problems) {
  recipe::sort_by_position(problems);
  const char* noun = problems.size() == 1 ? " problem" : " problems";
  throw Error(ExitCode::kUsage, concat(path, ": ", problems.size(), noun, "\n", recipe::text_of(problems)));
}

}  // namespace

Plan read_plan(const std::string& path, const std::vector<std::string>& arguments) {
  recipe::Loaded loaded = recipe::load_recipe(path, arguments, all_component_keys());
  Plan plan;
  plan.recipe = loaded.recipe;
  plan.text = loaded.text;
  plan.notices = loaded.notices;
  std::vector<recipe::Problem>& problems = loaded.problems;
  // Where there is nothing to read, missing components are no further problem.
  if (loaded.root.kind != recipe::Node::Kind::kMap) throw_problems(path, problems);
  plan.model = recipe::choose(models::all_models(), plan.recipe.model, "model", problems);
  plan.data = recipe::choose(data::all_data_sets(), plan.recipe.data, "data", problems);
  plan.objective = recipe::choose(objectives::all_objectives(), plan.recipe.objective, "objective", problems);
  plan.optimizer = recipe::choose(optim::all_optimizers(), plan.recipe.optimizer, "optimizer", problems);
  plan.schedule = recipe::choose(optim::all_schedules(), plan.recipe.lr_scheduler, "lr_scheduler", problems);
  if (!problems.empty()) throw_problems(path, problems);
  return plan;
}

std::string Plan::resolved() const {
  return written(recipe);
}

std::string Plan::identity() const {
  recipe::Recipe part = recipe;
  part.name.clear();
  part.output_dir.clear();
  part.device = "auto";
  part.logging = {};
  part.cpu = {};
  return written(part);
}

std::string Plan::written(const recipe::Recipe& values) const {
  return recipe::write_recipe(values, {{"model", model.describe},
                                       {"data", data.describe},
                                       {"objective", objective.describe},
                                       {"optimizer", optimizer.describe},
                                       {"lr_scheduler", schedule.describe}});
}

}  // namespace gputrain::run
