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

void check_targets(const Split& split, const char* samples, const std::optional<std::int64_t>& ignore_index) {
  if (has_targets(split)) return;
  const std::string reason =
      ignore_index ? concat(": all are ", *ignore_index, ", the data.ignore_index") : "";
  throw Error(ExitCode::kData,
              concat("data: none of the ", split.size(), " ", samples, " samples has a target", reason,
                     "; expected at least one that enters the loss: add samples with targets",
                     ignore_index ? ", or change data.ignore_index" : ""));
}

}  // namespace

void check_targets(const DataSet& set) {
  check_targets(*set.train, "training", set.ignore_index);
  if (set.validation) check_targets(*set.validation, "validation", set.ignore_index);
}

const std::vector<DataComponent>& all_data_sets() {
  static const std::vector<DataComponent> all = {fashion_mnist(), idx(), synthetic(), testing_linear(),
                                                 testing_sequences()};
  return all;
}

}  // namespace gputrain::data
