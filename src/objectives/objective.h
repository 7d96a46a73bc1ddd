#pragma once

#include "recipe/component.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::objectives {

// What a model is trained for: a loss summed over targets, and metrics counted over targets, so that sums
// over any split of the data divide to the same means. Positions that the data set's `ignore_index` marks are
// no targets: they add nothing to any sum. A batch without a target has sums of 0 and gradients of 0.
class Objective {
 public:
  virtual ~Objective() = default;

  // Sum of the per-target losses: 0-d, float32, with its graph.
  virtual at::Tensor loss_sum(const at::Tensor& output, const at::Tensor& target) const = 0;

  // For each metric the number of targets that count for it: [metrics], float32, on the output's device.
  virtual at::Tensor metric_sums(const at::Tensor& output, const at::Tensor& target) const = 0;

  // Names in the order of metric_sums, at least one; each is a fraction of the targets, higher is better. The
  // first one decides which validation was best.
  virtual const std::vector<std::string>& metrics() const = 0;

  // Its keys that are given otherwise than by default and do nothing with this data, each with the reason:
  // "ignore_index (this data marks no targets to be ignored)".
  virtual std::vector<std::string> inactive() const { return {}; }
};

struct ObjectiveContext {
  std::int64_t num_classes = 0;
  std::optional<std::int64_t> ignore_index = std::nullopt;  // the data's
};

using ObjectiveComponent = recipe::Component<std::unique_ptr<Objective>, const ObjectiveContext&>;

// Every objective that a recipe can name. Adding one: a file with its options and build function, and a row
// here.
const std::vector<ObjectiveComponent>& all_objectives();

}  // namespace gputrain::objectives
