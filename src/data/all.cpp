#include "data/components.h"

namespace gputrain::data {

const std::vector<DataComponent>& all_data_sets() {
  static const std::vector<DataComponent> all = {fashion_mnist(), idx(), synthetic(), testing_linear()};
  return all;
}

}  // namespace gputrain::data
