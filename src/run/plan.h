#pragma once

#include "data/data_set.h"
#include "models/model.h"
#include "objectives/objective.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "recipe/load.h"

#include <string>
#include <vector>

namespace gputrain::run {

// A recipe without mistakes: its own keys and those of each component it names.
struct Plan {
  recipe::Recipe recipe;
  std::string text;  // the file as it was given
  std::vector<std::string> notices;
  models::ModelComponent::Bound model;
  data::DataComponent::Bound data;
  objectives::ObjectiveComponent::Bound objective;
  optim::OptimizerComponent::Bound optimizer;
  optim::ScheduleComponent::Bound schedule;

  // The recipe with every value, as resolved.yaml holds it.
  std::string resolved() const;

  // The part of it that decides what is trained: without the run's name and folder, logging, and the machine.
  // Two runs of equal identity are the same run.
  std::string identity() const;

 private:
  std::string written(const recipe::Recipe& values) const;
};

// Reads a recipe with `arguments` (`key=value`, `~key`) over it. Throws Error(kUsage) with every problem, a
// line each.
Plan read_plan(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace gputrain::run
