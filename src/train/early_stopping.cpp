#include "train/early_stopping.h"

#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gputrain::train {
namespace {

constexpr const char* kLoss = "loss";
constexpr const char* kAveragesLoss = "ema_loss";

bool falls(const std::string& name) {
  return name == kLoss || name == kAveragesLoss;
}

double value_of(const EvalRecord& record, const std::string& name) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (name == kLoss) return record.loss;
  if (name == kAveragesLoss) return record.ema_loss.value_or(kNone);
  const auto found = std::find_if(record.metrics.begin(), record.metrics.end(),
                                  [&](const Metric& metric) { return metric.name == name; });
  return found == record.metrics.end() ? kNone : found->value;
}

}  // namespace

std::vector<std::string> judged_numbers(const objectives::Objective& objective, bool has_averages) {
  std::vector<std::string> names{kLoss};
  for (const std::string& metric : objective.metrics()) names.push_back(metric);
  if (!has_averages) return names;
  names.emplace_back(kAveragesLoss);
  for (const std::string& metric : objective.metrics()) names.push_back(of_averages(metric));
  return names;
}

void EarlyStopping::take(const EvalRecord& record) {
  judged_ = options_.metric == "auto" ? record.best_metric : options_.metric;
  const double value = value_of(record, judged_);
  const double gain = falls(judged_) ? best_.value_or(0) - value : value - best_.value_or(0);
  const bool improves = best_ ? gain > options_.min_delta : !std::isnan(value);
  if (!improves) {
    ++since_best_;
    return;
  }
  best_ = value;
  best_step_ = record.step;
  since_best_ = 0;
}

std::string EarlyStopping::reason() const {
  const std::string by = options_.min_delta > 0 ? " by more than " + shortest(options_.min_delta) : "";
  return concat(judged_, falls(judged_) ? " has not fallen" : " has not risen", by, " in ", since_best_,
                since_best_ == 1 ? " validation" : " validations",
                best_ ? concat(", since step ", best_step_) : "");
}

}  // namespace gputrain::train
