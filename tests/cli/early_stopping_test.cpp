#include "cli/json_lines.h"
#include "cli/workshop.h"

namespace gputrain::testing {

TEST_CASE("early stopping: ends a run that gets no better, with 0, and says why", "[cli]") {
  const Workshop shop;
  const std::vector<std::string> command = {"run", "recipe.yaml", "optimizer.lr=1e-12", "epochs=100",
                                            "early_stopping=3"};
  const Outcome outcome = shop.gputrain(command);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("accuracy has not risen in 3 validations, since step 4\n"));
  CHECK_THAT(outcome.err, ContainsSubstring("points: done, stopped early\n"));
  CHECK_THAT(shop.read("runs/points/train.log"),
             ContainsSubstring("accuracy has not risen in 3 validations"));
  const auto summary = nlohmann::json::parse(shop.read("runs/points/summary.json"));
  CHECK(summary["reason"] == "early_stopped");
  CHECK(summary["steps"] == 16);  // 4 an epoch: the first validation and three more
  CHECK(shop.exists("runs/points/model.safetensors"));

  const Outcome again = shop.gputrain(command);
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.err, ContainsSubstring("this run is finished"));
}

TEST_CASE("early stopping: any number of a validation can be followed", "[cli]") {
  for (const std::string metric : {"loss", "accuracy", "ema_loss", "ema_accuracy"}) {
    const Workshop shop;
    const Outcome outcome =
        shop.gputrain({"run", "recipe.yaml", "optimizer.lr=1e-12", "epochs=100", "ema=0.9",
                       "early_stopping={patience: 2, min_delta: 1e-6, metric: " + metric + "}"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.err, ContainsSubstring(metric + " has not "));
    CHECK_THAT(outcome.err, ContainsSubstring("points: done, stopped early"));
  }
}

TEST_CASE("early stopping: a run too short for it is told so", "[cli]") {
  const Workshop shop;  // 4 steps an epoch
  const auto said = [&](const std::string& patience, const std::string& epochs, const std::string& every) {
    return shop
        .gputrain({"check", "recipe.yaml", "early_stopping=" + patience, "epochs=" + epochs,
                   "validation.every=" + every})
        .err;
  };
  CHECK_THAT(said("2", "3", "1ep"),
             ContainsSubstring("note: early stopping cannot end this run: it takes 3 validations before the "
                               "last step, and of 12 steps there are 2; see early_stopping.patience and "
                               "validation.every"));
  CHECK_THAT(said("2", "4", "6"), ContainsSubstring("it takes 3 validations"));
  for (const std::string every : {"1ep", "1s"}) {
    CHECK_THAT(said("2", "4", every), !ContainsSubstring("cannot end this run"));
  }
}

TEST_CASE(
    "early stopping: without validations, or by a number that there is not, it is refused with its place",
    "[cli]") {
  const Workshop shop;
  const std::string recipe = Workshop::recipe();
  shop.write("early.yaml", recipe + "early_stopping: { patience: 2, metric: acuracy }\n");
  const Outcome unknown = shop.gputrain({"check", "early.yaml"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err,
             ContainsSubstring("early.yaml:9:40: early_stopping.metric is acuracy; expected auto, "
                               "loss or accuracy; did you mean accuracy?"));
  const Outcome blind = shop.gputrain({"run", "early.yaml", "~data.validation_path"});
  CHECK(blind.exit_code == 2);
  CHECK_THAT(blind.err, ContainsSubstring("early.yaml:9:17: early_stopping needs validations"));
  CHECK_FALSE(shop.exists("runs"));
  const Outcome inactive = shop.gputrain({"check", "recipe.yaml", "early_stopping.min_delta=0.1"});
  CHECK(inactive.exit_code == 0);
  CHECK_THAT(inactive.err, ContainsSubstring("note: inactive: early_stopping (patience is not given)"));
}

}  // namespace gputrain::testing
