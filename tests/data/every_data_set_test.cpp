#include "data/data_set.h"
#include "idx_files.h"
#include "recipe/component.h"
#include "support/catch.h"
#include "support/settings.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace gputrain;
using namespace gputrain::data;
using namespace gputrain::test;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// Settings that make each data set small and independent of what is installed.
Settings small_settings(const std::string& name, const TempFolder& folder) {
  const Bytes pixels(3 * 4, 100);
  const std::string images = folder.write("train-images-idx3-ubyte", idx_images(3, 2, 2, pixels));
  const std::string labels = folder.write("train-labels-idx1-ubyte", idx_labels({2, 0, 1}));
  folder.write("t10k-images-idx3-ubyte", idx_images(3, 2, 2, pixels));
  folder.write("t10k-labels-idx1-ubyte", idx_labels({2, 0, 1}));
  if (name == "fashion_mnist") return {{"path", folder.path()}};
  if (name == "idx") return {{"train_images", images}, {"train_labels", labels}};
  if (name == "synthetic") return {{"samples", "5"}, {"pool", "2"}, {"num_classes", "3"}};
  if (name == "testing.linear") return {{"path", folder.write("samples.txt", "0 1 2\n1 3 4\n")}};
  FAIL("a data set without settings for this test: " << name);
  return {};
}

void check_split(Split& split, const DataSet& set) {
  REQUIRE(split.size() > 0);
  const std::vector<std::int64_t> ids = {split.size() - 1, 0};
  const nn::Batch batch = split.batch(ids);
  std::vector<std::int64_t> shape = set.sample_shape;
  shape.insert(shape.begin(), 2);
  REQUIRE(batch.input.sizes().vec() == shape);
  REQUIRE(batch.input.scalar_type() == at::kFloat);
  REQUIRE(batch.input.is_contiguous(at::MemoryFormat::ChannelsLast));
  REQUIRE(batch.target.scalar_type() == at::kLong);
  REQUIRE(batch.target.sizes().vec() == std::vector<std::int64_t>{2});
  REQUIRE(batch.sample_ids == ids);
  REQUIRE(batch.targets == split.targets(ids));
  for (int i = 0; i < 2; ++i) {
    REQUIRE(batch.target[i].item<std::int64_t>() >= 0);
    REQUIRE(batch.target[i].item<std::int64_t>() < set.num_classes);
  }
  REQUIRE(split.batch(ids).input.equal(batch.input));
  REQUIRE_THROWS_AS(split.batch({split.size()}), std::out_of_range);
}

}  // namespace

TEST_CASE("every data set: binds its settings and gives batches as promised", "[data]") {
  const TempFolder folder;
  for (const DataComponent& component : all_data_sets()) {
    INFO(component.name);
    const auto chosen = bound(all_data_sets(), component.name, small_settings(component.name, folder));
    const DataSet set = chosen.build({at::Device(at::kCPU), 1});
    REQUIRE_FALSE(set.unit.empty());
    check_split(*set.train, set);
    if (set.validation) check_split(*set.validation, set);
  }
}

TEST_CASE("every data set: has a name of its own and a meaning", "[data]") {
  std::set<std::string> names;
  for (const DataComponent& component : all_data_sets()) {
    INFO(component.name);
    REQUIRE(names.insert(component.name).second);
    REQUIRE_FALSE(component.meaning.empty());
  }
  REQUIRE(names.count("fashion_mnist") == 1);
}

TEST_CASE("every data set: an unknown key is a problem that names it", "[data]") {
  for (const DataComponent& component : all_data_sets()) {
    INFO(component.name);
    std::vector<recipe::Problem> problems;
    component.bind(settings({{"no_such_key", "1"}}), "data", {}, problems);
    REQUIRE(problems.size() == 1);
    REQUIRE_THAT(problems[0].text, ContainsSubstring("no_such_key"));
  }
}
