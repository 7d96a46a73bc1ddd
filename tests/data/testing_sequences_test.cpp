#include "data/testing_sequences.h"

#include "base/error.h"
#include "idx_files.h"
#include "support/catch.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

using namespace gputrain;
using namespace gputrain::data;
using gputrain::test::TempFolder;

namespace {

using Numbers = std::vector<std::int64_t>;

const DataContext kCpu{at::Device(at::kCPU), 1};

std::vector<Sequence> read(const std::string& text, std::int64_t ignore_index = -100) {
  std::istringstream in(text);
  return read_sequences(in, "samples.txt", ignore_index);
}

}  // namespace

TEST_CASE("testing.sequences: reads tokens and targets, skipping comments and empty lines", "[data]") {
  const auto samples = read("# two samples\n5 6 7 | 6 7 -100\n\n 3|-100\r\n");
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].tokens == Numbers{5, 6, 7});
  CHECK(samples[0].targets == Numbers{6, 7, -100});
  CHECK(samples[1].tokens == Numbers{3});
  CHECK(samples[1].place == "samples.txt:4");
}

TEST_CASE("testing.sequences: a faulty line is named", "[data]") {
  CHECK_THROWS_WITH(read("0 | 1\n1 x | 1 1\n"),
                    "samples.txt:2: found x; expected lines of `token token ... | target target ...`");
  CHECK_THROWS_WITH(read("0 1\n"),
                    "samples.txt:1: has no |; expected lines of `token token ... | target target ...`");
  CHECK_THROWS_WITH(read("0 1 | 1\n"),
                    "samples.txt:1: has 2 tokens and 1 targets; expected at least 1, as many of each");
  CHECK_THROWS_WITH(read(" | \n"),
                    "samples.txt:1: has 0 tokens and 0 targets; expected at least 1, as many of each");
  CHECK_THROWS_WITH(read("-100 | 1\n"), "samples.txt:1: a token is -100; expected 0 to 999999999");
  CHECK_THROWS_WITH(read("1 | -1\n"),
                    "samples.txt:1: a target is -1; expected 0 to 999999999, or -100 for none");
  CHECK_THROWS_WITH(read("1 | -100\n", -1),
                    "samples.txt:1: a target is -100; expected 0 to 999999999, or -1 for none");
  CHECK_THROWS_WITH(read("# nothing\n"),
                    "samples.txt: has no samples; expected lines of `token token ... | target target ...`");
}

TEST_CASE("testing.sequences: batches are padded, and count what is not ignored", "[data]") {
  const TempFolder folder;
  TestingSequencesOptions options;
  options.path = folder.write("train.txt", "5 6 7 | 6 7 -100\n3 | -100\n1 2 | -100 0\n");
  options.validation_path = folder.write("val.txt", "4 4 | 4 4\n");
  const DataSet set = build_testing_sequences(options, kCpu);
  CHECK(set.sample_shape == Numbers{3});
  CHECK(set.num_classes == 8);
  CHECK(set.ignore_index == -100);
  CHECK(set.train->size() == 3);
  const nn::Batch batch = set.train->batch({2, 0, 1});
  CHECK(batch.input.equal(at::tensor(Numbers{1, 2, 0, 5, 6, 7, 3, 0, 0}, at::kLong).view({3, 3})));
  CHECK(batch.target.equal(
      at::tensor(Numbers{-100, 0, -100, 6, 7, -100, -100, -100, -100}, at::kLong).view({3, 3})));
  CHECK(batch.targets == 3);
  CHECK(set.train->targets({1}) == 0);
  CHECK(set.train->targets({0, 0, 2}) == 5);
  CHECK(set.validation->batch({0}).targets == 2);
  CHECK_THROWS_WITH(set.train->batch({3}), "sample 3 of a split of 3");
  options.length = 5;
  CHECK(build_testing_sequences(options, kCpu).train->batch({0}).input.sizes() == at::IntArrayRef({1, 5}));
}

TEST_CASE("testing.sequences: a class may be what is ignored", "[data]") {
  const TempFolder folder;
  TestingSequencesOptions options;
  options.path = folder.write("train.txt", "0 1 2 | 0 2 1\n");
  options.ignore_index = 2;
  const DataSet set = build_testing_sequences(options, kCpu);
  CHECK(set.num_classes == 3);
  CHECK(set.train->targets({0}) == 2);
}

TEST_CASE("testing.sequences: what does not fit the vocabulary or the length is named with its place",
          "[data]") {
  const TempFolder folder;
  TestingSequencesOptions options;
  CHECK_THROWS_WITH(build_testing_sequences(options, kCpu), ContainsSubstring("data.path is not given"));
  options.path = folder.write("train.txt", "0 1 | 1 0\n2 0 | 0 0\n");
  options.vocab_size = 2;
  CHECK_THROWS_WITH(build_testing_sequences(options, kCpu),
                    folder.path("train.txt") + ":2: a token is 2; expected 0 to 1 for a vocabulary of 2");
  options.vocab_size.reset();
  options.validation_path = folder.write("val.txt", "0 | 0\n\n0 | 3\n");
  CHECK_THROWS_WITH(
      build_testing_sequences(options, kCpu),
      folder.path("val.txt") + ":3: a target is 3; expected 0 to 2 for a vocabulary of 3, or -100 for none");
  options.validation_path = folder.write("long.txt", "0 0 0 | 0 0 0\n");
  CHECK_THROWS_WITH(build_testing_sequences(options, kCpu),
                    folder.path("long.txt") + ":1: has 3 tokens; expected at most 2");
  options.validation_path = folder.path("none");
  CHECK_THROWS_WITH(build_testing_sequences(options, kCpu), ContainsSubstring("none: cannot be read"));
}
