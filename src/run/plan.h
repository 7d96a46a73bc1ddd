#pragma once

#include "base/error.h"
#include "data/data_set.h"
#include "models/model.h"
#include "objectives/objective.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "recipe/load.h"

#include <map>
#include <string>
#include <vector>

namespace gputrain::run {

// A recipe as read: its own keys and those of each component it names.
struct Plan {
  recipe::Recipe recipe;
  recipe::Node root;                      // what it was read from
  std::string path;                       // of the recipe's file
  std::string text;                       // the file as it was given
  std::vector<std::string> readings;      // what was read as something else, or left out: with its place
  std::vector<std::string> notices;       // everything else that the user should know
  std::vector<recipe::Problem> problems;  // a component that has one may be without its `build`
  models::ModelComponent::Bound model;
  data::DataComponent::Bound data;
  objectives::ObjectiveComponent::Bound objective;
  optim::OptimizerComponent::Bound optimizer;
  optim::ScheduleComponent::Bound schedule;

  // The recipe with every value and where it comes from, as resolved.yaml holds it.
  std::string resolved() const;

  // The part of it that decides what is trained: without the run's name and folder, logging, and the machine.
  // Two runs of equal identity are the same run.
  std::string identity() const;

  // Every key with its value now.
  std::vector<recipe::Key> keys() const;

 private:
  std::map<std::string, recipe::Describe> components() const;
};

// Every key of the recipe and of each kind of component.
const recipe::Catalogue& catalogue();

// Reads a recipe with `arguments` (`key=value`, `~key`) over it.
Plan read_plan(const std::string& path, const std::vector<std::string>& arguments);

// Throws, where the plan has problems, Error(`code`) with all of them, a line each.
void refuse_problems(const Plan& plan, ExitCode code = ExitCode::kUsage);

}  // namespace gputrain::run
