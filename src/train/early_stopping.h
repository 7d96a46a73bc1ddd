#pragma once

#include "objectives/objective.h"
#include "train/records.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gputrain::train {

struct EarlyStoppingOptions {
  std::int64_t patience = 1;    // validations in a row without improvement that end a run
  double min_delta = 0;         // an improvement is more than this
  std::string metric = "auto";  // one of judged_numbers(), or auto: that which `best` follows
};

// What a validation has that a run can be judged by: loss, the objective's metrics and, with averages,
// theirs.
std::vector<std::string> judged_numbers(const objectives::Objective& objective, bool has_averages);

// Counts validations since the best one. Losses improve by falling, metrics by rising; what is not a number
// improves nothing.
class EarlyStopping {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {}

  void take(const EvalRecord& record);

  // Whether the run shall end.
  bool is_due() const { return since_best_ >= options_.patience; }

  // "accuracy has not risen in 3 validations, since step 12"
  std::string reason() const;

 private:
  EarlyStoppingOptions options_;
  std::string judged_;  // the number that the last validation was judged by
  std::optional<double> best_;
  std::int64_t best_step_ = 0;
  std::int64_t since_best_ = 0;
};

}  // namespace gputrain::train
