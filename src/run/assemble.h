#pragma once

#include "device/memory_limit.h"
#include "run/plan.h"
#include "train/trainer.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::run {

// Everything a recipe names, made and ready to train.
struct Assembly {
  Assembly();
  Assembly(Assembly&&) noexcept;
  ~Assembly();  // where models::Model is complete

  std::unique_ptr<device::MemoryLimit> memory_limit;  // null: none; outlives what is made below it
  train::TrainOptions options;
  data::DataSet data;
  models::Model model;
  at::Tensor flat_buffers;
  std::unique_ptr<objectives::Objective> objective;
  std::unique_ptr<optim::Optimizer> optimizer;
  optim::Schedule schedule;
  std::unique_ptr<optim::Ema> ema;  // null: nothing is averaged
  train::RunInfo info;
  std::vector<std::string> notices;  // the plan's among them

  train::TrainParts parts();
};

// Replaces what is `auto` in the recipe by what it means on this machine, without starting a GPU. A device
// that is not there is one more problem of the plan; where nothing is to be trained, as on the login node of
// a cluster, it is a notice, and stays as it was written.
enum class Purpose { kTrain, kLook };
void resolve(Plan& plan, Purpose purpose);

// Tries a forward and a backward pass, so that an operator that `deterministic` refuses is told of before
// anything is written. Throws SettingError for such an operator. The model is as before.
void check_deterministic(const Assembly& made);

// Opens the data, builds the model and what trains it, on the device of a resolved plan, below its limit of
// memory. Writes nothing.
// Each of `also` looks at more of what was made. Throws Error with the plan's problems, those of all parts
// and what these throw: kUsage where a setting is wrong, else the code of the first of them.
Assembly assemble(const Plan& plan, const std::vector<std::function<void(const Assembly&)>>& also = {});

}  // namespace gputrain::run
