#include "base/error.h"
#include "base/text.h"
#include "data/components.h"

namespace gputrain::data {
namespace {

bool has_targets(const Split& split) {
  for (std::int64_t id = 0; id < split.size(); ++id) {
    if (split.targets({id}) > 0) return true;
  }
  return false;
}

void check_targets(const Split& split, const char* samples) {
  if (has_targets(split)) return;
  throw Error(ExitCode::kData,
              concat("data: none of the ", split.size(), " ", samples,
                     " samples has a target, all are its ignore_index; expected at least one that enters the "
                     "loss"));
}

}  // namespace

void check_targets(const DataSet& set) {
  check_targets(*set.train, "training");
  if (set.validation) check_targets(*set.validation, "validation");
}

const std::vector<DataComponent>& all_data_sets() {
  static const std::vector<DataComponent> all = {fashion_mnist(), idx(), synthetic(), testing_linear(),
                                                 testing_sequences()};
  return all;
}

}  // namespace gputrain::data
