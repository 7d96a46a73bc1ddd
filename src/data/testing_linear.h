#pragma once

#include "data/data_set.h"
#include "recipe/visitor.h"

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::data {

// Values under a test's control, from a text file with one sample per line: "label v1 v2 ...".
struct TestingLinearOptions {
  std::optional<std::string> path;  // needed
  std::optional<std::string> validation_path;
  std::optional<std::int64_t> num_classes;
};
void describe(recipe::Visitor& v, TestingLinearOptions& o);

struct LinearSamples {
  std::int64_t features = 0;
  std::vector<std::int64_t> labels;  // [samples]
  std::vector<float> values;         // [samples, features]
};

// Lines that are empty or begin with # are skipped; nan and inf are values. Throws Error(kData) with name and
// line for text that is not a number, a negative label, another number of values than in the line before; and
// when there is no sample.
LinearSamples read_linear(std::istream& in, const std::string& name);

DataSet build_testing_linear(const TestingLinearOptions& options, const DataContext& context);

}  // namespace gputrain::data
