#pragma once

#include "base/units.h"
#include "recipe/node.h"
#include "recipe/visitor.h"

#include <cstdint>
#include <string>

namespace gputrain::recipe {

// What a message calls a value: "0.1", "\"text\"", "null", "a list".
std::string show(const Node& node);

// "0 <= lr < 1", "lr > 0".
std::string range_text(const std::string& name, Range range);

// Numbers as a recipe may write them: decimal and finite, `1e-4`, `1.e-4` and `.5` included; not `1_000`,
// `0x10`, `010` or `"1"`. `name` is what the range calls the value: "expected 0 <= lr <= 1".
Parsed<double> read_number(const Node& node, const std::string& name, Range range);
Parsed<std::int64_t> read_integer(const Node& node, const std::string& name, Range range);

Parsed<bool> read_boolean(const Node& node);
Parsed<std::string> read_text_value(const Node& node);
Parsed<double> read_duration(const Node& node);
Parsed<std::int64_t> read_bytes(const Node& node);
Parsed<Interval> read_interval(const Node& node);

// auto, cpu, cuda or cuda:N.
Parsed<std::string> read_device(const Node& node);

// Absolute; see Visitor::path.
Parsed<std::string> read_path(const Node& node);

}  // namespace gputrain::recipe
