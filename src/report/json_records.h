#pragma once

#include "train/records.h"

#include <nlohmann/json.hpp>

#include <string>

namespace gputrain::report {

using Json = nlohmann::ordered_json;

// Records as docs/metrics.md lists them, keys in that order. JSON has no nan: such a number is null, and
// a key with "_text" behind its name says which it was.
Json to_json(const train::RunInfo& info);
Json to_json(const train::StepRecord& record);
Json to_json(const train::EvalRecord& record);
Json to_json(const train::RunInfo& info, const train::RunSummary& summary);

// On one line, without a newline. Bytes that are not UTF-8 (in a path) become U+FFFD.
std::string json_line(const Json& object);

}  // namespace gputrain::report
