#include "cli/json_lines.h"
#include "cli/workshop.h"

#include <cstdint>
#include <cstring>

namespace gputrain::testing {
namespace {

// Of a safetensors file: its length is the first 8 bytes.
nlohmann::json header_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return nlohmann::json::parse(file.substr(sizeof length, length));
}

nlohmann::json summary_of(const Workshop& shop) {
  return nlohmann::json::parse(shop.read("runs/points/summary.json"));
}

}  // namespace

TEST_CASE("ema: averages are evaluated and saved beside the weights", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "ema=0.5", "logging.csv=true"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring(" | ema_loss 0."));
  CHECK_THAT(outcome.err, ContainsSubstring(" | best ema_accuracy "));
  CHECK_THAT(shop.read("runs/points/evals.csv"), ContainsSubstring(",ema_loss,accuracy,ema_accuracy\n"));
  const auto evals = of_kind(json_lines(shop.read("runs/points/metrics.jsonl")), "eval");
  REQUIRE(evals.size() == 2);
  CHECK(evals[1]["ema_loss"] != evals[1]["loss"]);
  CHECK(evals[1]["best_metric"] == "ema_accuracy");
  const nlohmann::json summary = summary_of(shop);
  CHECK(summary["last_eval"]["ema_loss"] == evals[1]["ema_loss"]);
  CHECK_THAT(summary["written"].dump(), ContainsSubstring("\"runs/points/model-ema.safetensors\""));

  const std::string weights = shop.read("runs/points/model.safetensors");
  const std::string averages = shop.read("runs/points/model-ema.safetensors");
  CHECK(header_of(weights) == header_of(averages));
  CHECK(weights != averages);
}

TEST_CASE("ema: what is trained is the same with and without, in every precision", "[cli]") {
  for (const std::string precision : {"fp32", "bf16-mixed", "fp16-mixed", "bf16-true", "fp16-true"}) {
    const Workshop shop;
    std::vector<std::string> traces;
    for (const std::string decay : {"0", "0.9"}) {
      const std::string folder = "decay-" + decay;
      const Outcome outcome =
          shop.gputrain({"run", "recipe.yaml", "precision=" + precision, "ema.decay=" + decay, "epochs=5",
                         "logging.trace=trace.jsonl", "output_dir=" + folder});
      CAPTURE(precision, outcome.err);
      REQUIRE(outcome.exit_code == 0);
      traces.push_back(shop.read(folder + "/trace.jsonl"));
      CHECK(shop.exists(folder + "/model-ema.safetensors") == (decay != "0"));
    }
    CHECK(traces[0] == traces[1]);
    // Weights of 16 bits have averages of 16 bits in the file.
    CHECK(header_of(shop.read("decay-0.9/model.safetensors")) ==
          header_of(shop.read("decay-0.9/model-ema.safetensors")));
  }
}

TEST_CASE("ema: the averages are saved also when a signal or an error ends the run", "[cli]") {
  for (const auto& [fault, code] :
       {std::pair{"stop@step=3", 143}, std::pair{"oom@step=3,phase=forward", 4}}) {
    Workshop shop;
    shop.gputrain.set(std::string("GPUTRAIN_FAULT=") + fault);
    CHECK(shop.gputrain({"run", "recipe.yaml", "ema=0.9"}).exit_code == code);
    CHECK(shop.exists("runs/points/model.safetensors"));
    CHECK(shop.exists("runs/points/model-ema.safetensors"));
  }
}

TEST_CASE("ema: a skipped window does not move the averages", "[cli]") {
  // The first windows alike, then one that is not finite: nothing of it may be seen.
  std::vector<std::string> averages;
  for (const std::string fault : {"stop@step=2", "nan@step=3,micro=0;stop@step=3"}) {
    Workshop shop;
    shop.gputrain.set("GPUTRAIN_FAULT=" + fault);
    CHECK(shop.gputrain({"run", "recipe.yaml", "ema={decay: 0.9, warmup: true}"}).exit_code == 143);
    averages.push_back(shop.read("runs/points/model-ema.safetensors"));
  }
  CHECK(averages[0] == averages[1]);
}

TEST_CASE("ema: check counts the averages, and says what does nothing", "[cli]") {
  const Workshop shop;
  const Outcome with = shop.gputrain({"check", "recipe.yaml", "ema=0.9"});
  CHECK_THAT(with.err, ContainsSubstring("176 B for the weights and their averages"));  // 2 * 22 * 4
  const Outcome without = shop.gputrain({"check", "recipe.yaml", "ema.warmup=true"});
  CHECK_THAT(without.err, ContainsSubstring("88 B for the weights, beside the logs"));
  CHECK_THAT(without.err, ContainsSubstring("note: inactive: ema.warmup (ema.decay is 0)"));
  const Outcome wrong = shop.gputrain({"check", "recipe.yaml", "ema=1"});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("ema.decay is 1; expected 0 <= decay < 1"));
}

}  // namespace gputrain::testing
