#pragma once

#include "data/data_set.h"
#include "recipe/visitor.h"

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::data {

// Sequences of tokens under a test's control, from a text file with one sample per line: its tokens, a bar,
// and as many targets, "5 6 7 | 6 7 -100".
struct TestingSequencesOptions {
  std::optional<std::string> path;  // needed
  std::optional<std::string> validation_path;
  std::optional<std::int64_t> vocab_size;
  std::int64_t ignore_index = -100;
  std::optional<std::int64_t> length;
};
void describe(recipe::Visitor& v, TestingSequencesOptions& o);

struct Sequence {
  std::vector<std::int64_t> tokens;   // at least one
  std::vector<std::int64_t> targets;  // one per token
  std::string place;                  // "file:line"
};

// Lines that are empty or begin with # are left out. Throws Error(kData) with name and line for text that is
// not a number, a negative token, a target that is neither a token's number nor ignore_index, no token, or
// another number of targets than of tokens; and when there is no sample.
std::vector<Sequence> read_sequences(std::istream& in, const std::string& name, std::int64_t ignore_index);

// Every sample is padded to the same length, by token 0 and targets that are ignored.
DataSet build_testing_sequences(const TestingSequencesOptions& options, const DataContext& context);

}  // namespace gputrain::data
