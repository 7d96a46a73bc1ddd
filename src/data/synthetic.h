#pragma once

#include "data/data_set.h"
#include "recipe/visitor.h"

#include <cstdint>
#include <vector>

namespace gputrain::data {

// Random images made on the device, to measure training without a data set.
struct SyntheticOptions {
  std::vector<std::int64_t> shape = {3, 224, 224};
  std::int64_t num_classes = 1000;
  std::int64_t samples = 12800;
  std::int64_t validation_samples = 0;
  std::int64_t pool = 256;
};
void describe(recipe::Visitor& v, SyntheticOptions& o);

// Throws Error(kUsage) for a shape that is not three sizes, or a pool that no memory holds.
DataSet build_synthetic(const SyntheticOptions& options, const DataContext& context);

}  // namespace gputrain::data
