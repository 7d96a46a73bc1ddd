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
  if (name == "testing.sequences") {
    return {{"path", folder.write("sequences.txt", "0 1 2 | 1 2 -100\n1 | 0\n2 0 | -100 -100\n")}};
  }
  FAIL("a data set without settings for this test: " << name);
  return {};
}

// What is counted on the host is what an objective sums over.
void check_targets(const Split& split, const DataSet& set, const nn::Batch& batch) {
  const at::Tensor all = batch.target.flatten();
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < all.numel(); ++i) {
    const auto target = all[i].item<std::int64_t>();
    if (target == set.ignore_index) continue;
    REQUIRE(target >= 0);
    REQUIRE(target < set.num_classes);
    ++counted;
  }
  REQUIRE(batch.targets == counted);
  REQUIRE(split.targets(batch.sample_ids) == counted);
}

void check_split(Split& split, const DataSet& set) {
  REQUIRE(split.size() > 0);
  const std::vector<std::int64_t> ids = {split.size() - 1, 0};
  const nn::Batch batch = split.batch(ids);
  std::vector<std::int64_t> shape = set.sample_shape;
  shape.insert(shape.begin(), 2);
  REQUIRE(batch.input.sizes().vec() == shape);
  const bool is_image = shape.size() == 4;
  REQUIRE(batch.input.scalar_type() == (is_image ? at::kFloat : at::kLong));
  REQUIRE((!is_image || batch.input.is_contiguous(at::MemoryFormat::ChannelsLast)));
  REQUIRE(batch.target.scalar_type() == at::kLong);
  REQUIRE(batch.target.sizes() == (is_image ? at::IntArrayRef({2}) : batch.input.sizes()));
  REQUIRE(batch.sample_ids == ids);
  check_targets(split, set, batch);
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

TEST_CASE("data sets: one whose targets are all ignored is an error, of training or validation", "[data]") {
  const TempFolder folder;
  const std::string none = folder.write("none.txt", "0 1 | -100 -100\n1 | -100\n");
  const std::string some = folder.write("some.txt", "0 1 | -100 -100\n1 | 0\n");
  const auto check = [](const Settings& values) {
    check_targets(bound(all_data_sets(), "testing.sequences", values).build({at::Device(at::kCPU), 1}));
  };
  CHECK_NOTHROW(check({{"path", some}, {"validation_path", some}}));
  CHECK_THROWS_WITH(check({{"path", none}}),
                    "data: none of the 2 training samples has a target: all are -100, the data.ignore_index; "
                    "expected at least one that enters the loss: add samples with targets, or change "
                    "data.ignore_index");
  CHECK_THROWS_WITH(check({{"path", some}, {"validation_path", none}}),
                    ContainsSubstring("none of the 2 validation samples has a target"));
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
