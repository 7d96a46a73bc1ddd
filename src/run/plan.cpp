#include "run/plan.h"

#include "base/error.h"
#include "recipe/write.h"

namespace gputrain::run {

const recipe::Catalogue& catalogue() {
  static const recipe::Catalogue all = [] {
    recipe::Catalogue made = recipe::recipe_catalogue();
    made.kinds = {{"model", recipe::kinds(models::all_models(), "model")},
                  {"data", recipe::kinds(data::all_data_sets(), "data")},
                  {"objective", recipe::kinds(objectives::all_objectives(), "objective")},
                  {"optimizer", recipe::kinds(optim::all_optimizers(), "optimizer")},
                  {"lr_scheduler", recipe::kinds(optim::all_schedules(), "lr_scheduler")}};
    return made;
  }();
  return all;
}

Plan read_plan(const std::string& path, const std::vector<std::string>& arguments) {
  recipe::Loaded loaded = recipe::load_recipe(path, arguments, catalogue());
  Plan plan;
  plan.recipe = std::move(loaded.recipe);
  plan.root = std::move(loaded.root);
  plan.path = path;
  plan.text = std::move(loaded.text);
  plan.readings = std::move(loaded.notices);
  plan.problems = std::move(loaded.problems);
  // Where there is nothing to read, missing components are no further problem.
  if (plan.root.kind != recipe::Node::Kind::kMap) return plan;
  const std::vector<recipe::KnownKey> known = catalogue().known();
  const auto choose = [&](const auto& all, const recipe::Choice& choice, const char* component) {
    return recipe::choose(all, choice, component, known, plan.problems);
  };
  plan.model = choose(models::all_models(), plan.recipe.model, "model");
  plan.data = choose(data::all_data_sets(), plan.recipe.data, "data");
  plan.objective = choose(objectives::all_objectives(), plan.recipe.objective, "objective");
  plan.optimizer = choose(optim::all_optimizers(), plan.recipe.optimizer, "optimizer");
  plan.schedule = choose(optim::all_schedules(), plan.recipe.lr_scheduler, "lr_scheduler");
  return plan;
}

void refuse_problems(const Plan& plan, ExitCode code) {
  if (plan.problems.empty()) return;
  std::vector<recipe::Problem> problems = plan.problems;
  recipe::sort_by_position(problems);
  const char* noun = problems.size() == 1 ? " problem" : " problems";
  std::string text = concat(plan.path, ": ", problems.size(), noun, "\n", recipe::text_of(problems));
  // It may be what a problem is about.
  for (const std::string& reading : plan.readings) text += concat("\nnote: ", reading);
  throw Error(code, text);
}

std::string Plan::resolved() const {
  return recipe::write_recipe(recipe, components(), &root);
}

std::string Plan::identity() const {
  recipe::Recipe part = recipe;
  part.name.clear();
  part.output_dir.clear();
  part.device = "auto";
  part.logging = {};
  part.memory.ledger = false;
  part.cpu = {};
  part.memory = {};
  part.cuda.allocator = {};
  part.cuda.empty_cache = {};
  return recipe::write_recipe(part, components());
}

std::vector<recipe::Key> Plan::keys() const {
  return recipe::keys_with_values(recipe, components());
}

std::map<std::string, recipe::Describe> Plan::components() const {
  return {{"model", model.describe},
          {"data", data.describe},
          {"objective", objective.describe},
          {"optimizer", optimizer.describe},
          {"lr_scheduler", schedule.describe}};
}

}  // namespace gputrain::run
