#include "optim/groups.h"

#include "base/error.h"
#include "support/catch.h"

namespace gputrain::optim {
namespace {

const std::vector<ParameterShape>& shapes() {
  static const std::vector<ParameterShape> all = {{"conv1.weight", 4},
                                                  {"bn1.weight", 1},
                                                  {"layer1.0.conv1.weight", 4},
                                                  {"layer1.0.bn1.bias", 1},
                                                  {"layer1.1.conv1.weight", 4},
                                                  {"fc.weight", 2},
                                                  {"fc.bias", 1}};
  return all;
}

std::vector<double> decays(const SharedOptions& options, bool spared) {
  std::vector<double> all;
  for (const ParameterSetting& one : parameter_settings(shapes(), options, spared))
    all.push_back(one.weight_decay);
  return all;
}

std::vector<double> scales(const SharedOptions& options) {
  std::vector<double> all;
  for (const ParameterSetting& one : parameter_settings(shapes(), options, true)) all.push_back(one.lr_scale);
  return all;
}

}  // namespace

TEST_CASE("groups: patterns match whole names", "[optim]") {
  CHECK(matches("fc.bias", "fc.bias"));
  CHECK(matches("layer1.*", "layer1.0.conv1.weight"));
  CHECK(matches("*.bias", "layer1.0.bn1.bias"));
  CHECK(matches("*", ""));
  CHECK(matches("*bn?.*s", "layer1.0.bn1.bias"));
  CHECK(matches("*a*ab", "aabaab"));
  CHECK(!matches("fc", "fc.bias"));
  CHECK(!matches("bias", "fc.bias"));
  CHECK(!matches("fc.bias?", "fc.bias"));
  CHECK(!matches("", "a"));
  CHECK(!matches("fcxbias", "fc.bias"));
}

TEST_CASE("groups: vectors get no weight decay where the optimizer or no_decay says so", "[optim]") {
  SharedOptions options;
  options.weight_decay = 0.5;
  const std::vector<double> all(7, 0.5);
  const std::vector<double> matrices = {0.5, 0, 0.5, 0, 0.5, 0.5, 0};
  CHECK(decays(options, true) == matrices);
  CHECK(decays(options, false) == all);
  options.no_decay = NoDecay::kNone;
  CHECK(decays(options, true) == all);
  options.no_decay = NoDecay::kNormsAndBiases;
  CHECK(decays(options, false) == matrices);
}

TEST_CASE("groups: later ones win, key by key", "[optim]") {
  SharedOptions options;
  options.weight_decay = 0.5;
  options.groups = {{{"layer1.*", "fc.*"}, 0.25, 0.1}, {{"*.bias"}, {}, 0.2}, {{"fc.??????"}, 0.0, {}}};
  CHECK(scales(options) == std::vector<double>{1, 1, 0.25, 0.25, 0.25, 0, 0.25});
  CHECK(decays(options, true) == std::vector<double>{0.5, 0, 0.1, 0.2, 0.1, 0.1, 0.2});
}

TEST_CASE("groups: the learning rate falls from the last layer to the first", "[optim]") {
  CHECK(layer_of("conv1.weight") == "conv1");
  CHECK(layer_of("layer1.0.conv1.weight") == "layer1.0");
  CHECK(layer_of("blocks.11.mlp.2.bias") == "blocks.11");
  CHECK(layer_of("0.weight") == "0");
  CHECK(layer_of("weight") == "weight");
  SharedOptions options;
  options.layer_lr_decay = 0.5;
  // conv1, bn1, layer1.0, layer1.1, fc
  CHECK(scales(options) == std::vector<double>{0.0625, 0.125, 0.25, 0.25, 0.5, 1, 1});
  options.groups = {{{"bn1.*"}, 4.0, {}}};
  CHECK(scales(options)[1] == 0.5);
}

TEST_CASE("groups: one that matches nothing is refused with the nearest names", "[optim]") {
  const auto refusal = [](const std::vector<Group>& groups) -> std::string {
    SharedOptions options;
    options.groups = groups;
    try {
      parameter_settings(shapes(), options, true);
    } catch (const SettingError& error) {
      CHECK(error.key() == "optimizer.groups");
      return error.what();
    }
    return "";
  };
  CHECK(
      refusal({{{"fc.wieght"}, {}, {}}}) ==
      "optimizer.groups has match: fc.wieght, and no parameter that trains has such a name; the nearest are "
      "fc.weight, bn1.weight and fc.bias");
  CHECK(refusal({{{"fc.*"}, {}, {}}, {{"fc.bias", "layer2.*"}, {}, {}}}) ==
        "optimizer.groups has match: layer2.*, and no parameter that trains has such a name; the nearest are "
        "layer1.0.conv1.weight, layer1.0.bn1.bias and layer1.1.conv1.weight");
  CHECK_THAT(refusal({{{"*.bais"}, {}, {}}}), Catch::Matchers::EndsWith("layer1.0.bn1.bias, fc.bias and "
                                                                        "conv1.weight"));
  CHECK(refusal({{{"fc.wieght"}, {}, {}}, {{"fc.bias", "layer2.*"}, {}, {}}}) ==
        "optimizer.groups has match: fc.wieght and layer2.*, and no parameter that trains has such a name; "
        "the nearest to fc.wieght are fc.weight, bn1.weight and fc.bias; the nearest to layer2.* are "
        "layer1.0.conv1.weight, layer1.0.bn1.bias and layer1.1.conv1.weight");
  CHECK(refusal({{{}, 0.5, {}}}) ==
        "optimizer.groups has an item without match; expected names of parameters, as in layer4.*");
  CHECK(refusal({{{"*"}, {}, {}}}).empty());
}

}  // namespace gputrain::optim
