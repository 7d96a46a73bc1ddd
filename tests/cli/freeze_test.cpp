#include "cli/json_lines.h"
#include "cli/workshop.h"
#include "state/safetensors.h"

#include <ATen/ops/equal.h>

namespace gputrain::testing {

TEST_CASE("freeze: frozen weights end as they began, and the others are trained", "[cli]") {
  for (const std::string optimizer : {"sgd", "adamw", "muon"}) {
    const Workshop shop;
    const auto weights_after = [&](const std::string& epochs) {
      const std::string folder = "after-" + epochs;
      const Outcome outcome =
          shop.gputrain({"run", "recipe.yaml", "model.hidden=[4, 3]", "optimizer.name=" + optimizer,
                         "optimizer.weight_decay=0.1", "freeze=layers.0.*", "ema=0.9", "epochs=" + epochs,
                         "output_dir=" + folder});
      INFO(outcome.err);
      REQUIRE(outcome.exit_code == 0);
      return std::pair{state::load_safetensors(shop.folder / folder / "model.safetensors").tensors,
                       state::load_safetensors(shop.folder / folder / "model-ema.safetensors").tensors};
    };
    const auto [first, first_averages] = weights_after("1");
    const auto [last, last_averages] = weights_after("9");
    for (const auto& [name, value] : first) {
      CAPTURE(optimizer, name);
      const bool is_frozen = name.rfind("layers.0.", 0) == 0;
      CHECK(at::equal(last.at(name), value) == is_frozen);
      CHECK(at::equal(last_averages.at(name), last.at(name)) == is_frozen);
    }
  }
}

TEST_CASE("freeze: batch normalisation goes on to follow its input, as in PyTorch", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "model.name=resnet18", "micro_batch_size=7",
                                         "epochs=1", "freeze=[conv1.*, bn1.*]", "precision=fp32"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto weights = state::load_safetensors(shop.folder / "runs/points/model.safetensors").tensors;
  CHECK(weights.at("bn1.weight").eq(1).all().item<bool>());
  CHECK_FALSE(weights.at("layer1.0.bn1.weight").eq(1).all().item<bool>());
  CHECK_FALSE(weights.at("bn1.running_mean").eq(0).all().item<bool>());
}

TEST_CASE("freeze: layers that are frozen do not count for layer_lr_decay", "[cli]") {
  // The first layer is the last that trains: nothing slows it down.
  const Workshop shop;
  std::vector<std::string> weights;
  for (const std::string decay : {"1", "0.5"}) {
    REQUIRE(shop.gputrain({"run", "recipe.yaml", "freeze=layers.1.*", "optimizer.layer_lr_decay=" + decay,
                           "output_dir=" + decay})
                .exit_code == 0);
    weights.push_back(shop.read(decay + "/model.safetensors"));
  }
  CHECK(weights[0] == weights[1]);
}

TEST_CASE("freeze: check says how many parameters train", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "freeze=[layers.0.*]"});
  CHECK(outcome.exit_code == 0);
  // 2 * 4 + 4 in the first layer, 4 * 2 + 2 in the last.
  CHECK_THAT(outcome.err, ContainsSubstring("parameters   22, of which 10 train and 12 are frozen\n"));
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "freeze=[layers.0.*]"}).exit_code == 0);
  CHECK_THAT(shop.read("runs/points/train.log"), ContainsSubstring("points: 22 parameters (12 frozen) | "));
  CHECK(of_kind(json_lines(shop.read("runs/points/metrics.jsonl")), "start")[0]["frozen_parameters"] == 12);
}

TEST_CASE("freeze: names that do not exist, and all names, are refused with their place", "[cli]") {
  const Workshop shop;
  shop.write("frozen.yaml", Workshop::recipe() + "freeze: [layer.0.*]\n");
  for (const char* command : {"run", "check"}) {
    const Outcome outcome = shop.gputrain({command, "frozen.yaml"});
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(
        outcome.err,
        ContainsSubstring("frozen.yaml:9:9: freeze has layer.0.*, and no parameter has such a name; the "
                          "nearest are layers.0.weight, layers.0.bias and layers.1.weight"));
    const Outcome all = shop.gputrain({command, "frozen.yaml", "freeze='*'", "ema=0.9"});
    CHECK(all.exit_code == 2);
    CHECK_THAT(all.err, ContainsSubstring("argument freeze='*': freeze leaves no parameter to train"));
  }
  const Outcome group = shop.gputrain(
      {"check", "recipe.yaml", "freeze=layers.0.*", "optimizer.groups=[{match: layers.0.*, lr_scale: 0.1}]"});
  CHECK(group.exit_code == 2);
  CHECK_THAT(group.err, ContainsSubstring("optimizer.groups has match: layers.0.*, and no parameter that "
                                          "trains has such a name"));
}

}  // namespace gputrain::testing
