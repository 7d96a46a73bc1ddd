#include "train/evaluate.h"

#include "data/order.h"
#include "nn/guards.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace gputrain::train {

std::optional<EvalRecord> evaluate(nn::Module& model, data::Split& split,
                                   const objectives::Objective& objective, const nn::Precision& precision,
                                   std::int64_t micro_batch_size, const StopFlag& stop) {
  const nn::EvaluationMode mode(model);
  at::Tensor sums;  // float64 [1 + metrics]: loss, then each metric
  std::int64_t targets = 0;
  for (const auto& ids : data::sequential_batches(split.size(), micro_batch_size)) {
    if (stop) return std::nullopt;
    nn::Batch batch = split.batch(ids);
    const at::Tensor output = nn::forward(model, std::move(batch.input), precision);
    const at::Tensor part = at::cat({objective.loss_sum(output, batch.target).reshape({1}),
                                     objective.metric_sums(output, batch.target)})
                                .to(at::kDouble);
    sums = sums.defined() ? sums.add_(part) : part;
    targets += batch.targets;
  }

  const at::Tensor on_host = sums.cpu();
  const double* values = on_host.const_data_ptr<double>();
  EvalRecord record;
  record.samples = split.size();
  record.loss = values[0] / static_cast<double>(targets);
  for (std::size_t i = 0; i < objective.metrics().size(); ++i) {
    record.metrics.push_back({objective.metrics()[i], values[1 + i] / static_cast<double>(targets)});
  }
  return record;
}

}  // namespace gputrain::train
