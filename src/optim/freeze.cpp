#include "optim/freeze.h"

#include "base/error.h"
#include "optim/groups.h"

#include <algorithm>
#include <iterator>

namespace gputrain::optim {

void freeze(const nn::NamedTensors& parameters, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters) names.push_back(name);
  check_patterns({"freeze", "has", "no parameter"}, patterns, names);
  const auto is_frozen = [&](const std::string& name) { return matches_any(patterns, name); };
  if (!names.empty() && std::all_of(names.begin(), names.end(), is_frozen)) {
    throw SettingError("freeze", "leaves no parameter to train; expected patterns that match only some");
  }
  for (const auto& [name, parameter] : parameters) {
    if (is_frozen(name)) parameter.set_requires_grad(false);
  }
}

nn::NamedTensors trained(const nn::NamedTensors& parameters) {
  nn::NamedTensors some;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(some),
               [](const auto& one) { return one.second.requires_grad(); });
  return some;
}

}  // namespace gputrain::optim
