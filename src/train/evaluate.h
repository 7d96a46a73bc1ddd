#pragma once

#include "base/stop_flag.h"
#include "data/data_set.h"
#include "nn/precision.h"
#include "objectives/objective.h"
#include "train/records.h"

#include <cstdint>
#include <optional>

namespace gputrain::train {

// Loss and metrics of the model over all samples of `split`, each counted once: sums over targets divided by
// targets. Without gradients and in evaluation mode; the mode before, and that of gradients, come back, also
// after an exception. Fills `samples`, `loss` and `metrics`. Waits for the device once, at the end.
// When `stop` is raised it ends at once, without a result.
std::optional<EvalRecord> evaluate(nn::Module& model, data::Split& split,
                                   const objectives::Objective& objective, const nn::Precision& precision,
                                   std::int64_t micro_batch_size, const StopFlag& stop);

}  // namespace gputrain::train
