#pragma once

#include <nlohmann/json.hpp>

namespace gputrain::device {

struct Environment;

nlohmann::ordered_json json_of(const Environment& environment);

}  // namespace gputrain::device
