#include "optim/freeze.h"

#include "base/error.h"
#include "optim/support.h"
#include "support/catch.h"

namespace gputrain::optim {
namespace {

std::vector<std::string> names(const nn::NamedTensors& tensors) {
  std::vector<std::string> all;
  for (const auto& [name, value] : tensors) all.push_back(name);
  return all;
}

std::string refusal(const std::vector<std::string>& patterns) {
  const nn::NamedTensors parameters = parameters_on(at::kCPU, at::kFloat, 1);
  try {
    freeze(parameters, patterns);
  } catch (const SettingError& error) {
    CHECK(error.key() == "freeze");
    CHECK(trained(parameters).size() == parameters.size());
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("freeze: what a pattern matches requires no gradient, and the rest is what trains", "[optim]") {
  const nn::NamedTensors parameters = parameters_on(at::kCPU, at::kFloat, 1);
  freeze(parameters, {});
  CHECK(trained(parameters).size() == 6);
  freeze(parameters, {"conv.*", "scale"});
  CHECK(names(trained(parameters)) == std::vector<std::string>{"wte.weight", "wide.weight", "fc.weight"});
  CHECK_FALSE(parameters[1].second.requires_grad());
}

TEST_CASE("freeze: a pattern that matches nothing, and one that leaves nothing, are refused", "[optim]") {
  CHECK(refusal({"fc.*", "cnv.*"}) ==
        "freeze has cnv.*, and no parameter has such a name; the nearest are conv.weight, conv.bias and "
        "wte.weight");
  CHECK(refusal({"*"}) == "freeze leaves no parameter to train; expected patterns that match only some");
  CHECK(refusal({"*.weight", "*.bias", "scale"}) ==
        "freeze leaves no parameter to train; expected patterns that match only some");
}

}  // namespace gputrain::optim
