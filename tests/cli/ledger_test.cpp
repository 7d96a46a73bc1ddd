#include "cli/json_lines.h"
#include "cli/workshop.h"
#include "support/gpu.h"

#include <algorithm>

namespace gputrain::testing {
namespace {

const std::string kFile = "runs/points/memory/ledger.json";

nlohmann::json ledger_of(const Workshop& shop, const std::string& file = kFile) {
  return nlohmann::json::parse(shop.read(file));
}

// Bytes of the classes together.
std::int64_t sum(const nlohmann::json& moment) {
  std::int64_t bytes = 0;
  for (const auto& [name, value] : moment.at("classes").items()) bytes += value.get<std::int64_t>();
  return bytes;
}

}  // namespace

// 2 values, 4 hidden units, 2 classes; micro-batches of 2.
TEST_CASE("memory.ledger: classes and layers of a run, counted by hand", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain(
      {"run", "recipe.yaml", "memory.ledger=true", "optimizer={name: adamw}", "ema=0.9", "freeze=*.0.bias"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const nlohmann::json ledger = ledger_of(shop);
  CHECK(ledger["unit"] == "bytes");
  CHECK(ledger["device"] == "cpu");
  const nlohmann::json& start = ledger["start"]["classes"];
  const nlohmann::json& peak = ledger["peak"]["classes"];
  for (const nlohmann::json& classes : {start, peak}) {
    CHECK(classes["weights"] == 22 * 4);
    CHECK(classes["optimizer_states"] == 2 * 18 * 4);  // without the frozen bias
    CHECK(classes["averages"] == 18 * 4);
    CHECK(classes["master_copies"] == 0);
    CHECK(classes["buffers"] == 0);
    CHECK(classes["gradients"] == 0);
  }
  CHECK(start["activations"] == 0);
  CHECK(start["input"] == 0);
  CHECK(peak["input"] == 2 * 2 * 4 + 2 * 8);
  // ReLU's result; the logarithms of the probabilities, and the number of targets.
  const nlohmann::json layers = {{{"layer", "the model"}, {"bytes", 2 * 4 * 4}},
                                 {{"layer", "the objective"}, {"bytes", 2 * 2 * 4 + 4}}};
  CHECK(ledger["peak"]["layers"] == layers);
  CHECK(peak["activations"] == 32 + 20);
  CHECK(peak["outputs"] == 2 * 2 * 4 + 4);  // and the loss
  CHECK(ledger["peak"]["window"] == 3);
  CHECK(ledger["peak"]["micro_batch"] == 1);
  CHECK(ledger["growth"]["bytes"] == 0);

  for (const std::string moment : {"start", "peak"}) {
    const nlohmann::json& all = ledger[moment];
    CHECK(all["allocated"] == sum(all) + all["unexplained"].get<std::int64_t>());
    CHECK(all["unexplained"] >= 0);
    CHECK(all["unexplained"] <= 256);  // some scalars
    CHECK(all["device"] == all["allocated"].get<std::int64_t>() + all["context"].get<std::int64_t>());
    CHECK(all["cached"].is_null());
  }
}

TEST_CASE("memory.ledger: the table is shown, and written to train.log", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "memory.ledger=true"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  for (const std::string& text : {outcome.err, shop.read("runs/points/train.log")}) {
    CHECK_THAT(text, ContainsSubstring("memory of cpu at the start, and at the end of the last forward pass "
                                       "of window 3:\n"));
    CHECK_THAT(text, ContainsSubstring("  weights                             88 B        88 B\n"));
    CHECK_THAT(text, ContainsSubstring("kept for backward, by layer:\n"));
    CHECK_THAT(text, ContainsSubstring("  the model                           32 B\n"));
  }
  CHECK_THAT(outcome.err, ContainsSubstring(kFile));
  const auto summary = nlohmann::json::parse(shop.read("runs/points/summary.json"));
  CHECK_THAT(summary["written"].dump(), ContainsSubstring('"' + kFile + '"'));
}

TEST_CASE("memory.ledger: gradients of earlier micro-batches, masters of 16-bit weights", "[cli]") {
  const Workshop shop;
  const std::vector<std::string> arguments{"run", "recipe.yaml", "memory.ledger=true",
                                           "gradient_accumulation_steps=3", "epochs=3"};
  REQUIRE(shop.gputrain(arguments).exit_code == 0);
  CHECK(ledger_of(shop)["peak"]["classes"]["gradients"] == 22 * 4);
  std::vector<std::string> in_16_bits = arguments;
  in_16_bits.insert(in_16_bits.end(), {"precision=bf16-true", "output_dir=true"});
  REQUIRE(shop.gputrain(in_16_bits).exit_code == 0);
  const nlohmann::json ledger = ledger_of(shop, "true/memory/ledger.json");
  CHECK(ledger["peak"]["classes"]["weights"] == 22 * 2);
  CHECK(ledger["peak"]["classes"]["master_copies"] == 22 * 4);
  CHECK(ledger["peak"]["classes"]["gradients"] == 22 * 4);  // sums in float32
}

TEST_CASE("memory.ledger: changes nothing of what is trained, and is not another run", "[cli]") {
  const Workshop shop;
  std::vector<std::string> traces;
  for (const std::string on : {"false", "true"}) {
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "memory.ledger=" + on, "epochs=4",
                                           "logging.trace=trace.jsonl", "output_dir=" + on});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    traces.push_back(shop.read(on + "/trace.jsonl"));
    CHECK(shop.exists(on + "/memory") == (on == "true"));
  }
  CHECK(traces[0] == traces[1]);
  const Outcome again = shop.gputrain({"run", "recipe.yaml", "memory.ledger=true", "epochs=4",
                                       "logging.trace=trace.jsonl", "output_dir=false"});
  CHECK_THAT(again.err, ContainsSubstring("this run is finished"));
}

TEST_CASE("memory.ledger: a short run is measured in its last window; one that is stopped says so", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "memory.ledger=true", "epochs=~", "max_steps=1"}).exit_code ==
          0);
  CHECK(ledger_of(shop)["peak"]["window"] == 1);
  CHECK(ledger_of(shop)["growth"].is_null());
  Workshop other;
  other.gputrain.set("GPUTRAIN_FAULT=stop@step=2");
  const Outcome stopped = other.gputrain({"run", "recipe.yaml", "memory.ledger=true"});
  CHECK(stopped.exit_code == 143);
  CHECK_THAT(stopped.err,
             ContainsSubstring("memory.ledger: not measured, since the run ended before a full window"));
  CHECK(!other.exists(kFile));
}

TEST_CASE("out of memory: the error tells what was live, and which layers kept most", "[cli]") {
  for (const std::string step : {"1", "3"}) {
    Workshop shop;
    shop.gputrain.set("GPUTRAIN_FAULT=oom@step=" + step + ",phase=optimizer");
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
    CHECK(outcome.exit_code == 4);
    CHECK_THAT(outcome.err, ContainsSubstring("\nin window 1 live: "));
    CHECK_THAT(outcome.err, ContainsSubstring("weights 88 B"));
    CHECK_THAT(outcome.err, ContainsSubstring("activations 52 B"));
    CHECK_THAT(outcome.err,
               ContainsSubstring("\nkept for backward, largest layers: the model 32 B, the objective 20 B"));
    CHECK_THAT(shop.read("runs/points/train.log"), ContainsSubstring("activations 52 B"));
  }
}

// Windows of an epoch have 2, 2, 2 and 1 samples; the first two are for warming up.
TEST_CASE("memory.ledger: waits for a full window", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "memory.ledger=true", "micro_batch_size=3", "epochs=2"})
              .exit_code == 0);  // 3, 3, 1, and so on
  CHECK(ledger_of(shop)["peak"]["window"] == 4);
}

TEST_CASE("check: tells the lasting memory by class", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "optimizer={name: adamw}", "ema=0.9"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  // 88 * (weights, gradients, two states, averages) + 32 for the input
  CHECK_THAT(outcome.err, ContainsSubstring("memory       472 B beside activations and temporaries "
                                            "(memory.ledger measures all)\n"
                                            "  weights           88 B\n"
                                            "  gradients         88 B\n"
                                            "  optimizer states  176 B\n"
                                            "  averages          88 B\n"
                                            "  input             32 B\n"));
  const Outcome in_16_bits = shop.gputrain({"check", "recipe.yaml", "precision=bf16-true"});
  CHECK_THAT(in_16_bits.err, ContainsSubstring("  weights           44 B\n"
                                               "  gradients         44 B\n"
                                               "  master copies     88 B\n"));
}

// The share of the driver's number that nobody accounts for, and that the parts make up the whole.
TEST_CASE("memory.ledger on the GPU: within 3 % of the driver's number for six recipes", "[cli][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const Workshop shop;
  shop.write("recipe.yaml",
             "device: cuda\nmicro_batch_size: 16\nmax_steps: 6\n"
             "model: { name: convnet }\ndata: { name: synthetic }\n");
  const std::vector<std::vector<std::string>> recipes{
      {"precision=fp32"},
      {"precision=fp16-mixed", "gradient_accumulation_steps=2"},
      {"precision=bf16-mixed", "model={name: resnet18}", "optimizer={name: adamw}", "ema=0.9"},
      {"precision=tf32", "model={name: mlp}", "optimizer={name: sgd, momentum: 0.9}"},
      {"precision=fp16-true", "model={name: resnet18}", "gradient_accumulation_steps=2"},
      {"precision=fp32", "cuda.graphs=true"}};
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    const std::string folder = "run" + std::to_string(i);
    std::vector<std::string> arguments{"run", "recipe.yaml", "memory.ledger=true", "output_dir=" + folder};
    arguments.insert(arguments.end(), recipes[i].begin(), recipes[i].end());
    const Outcome outcome = shop.gputrain(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const nlohmann::json ledger = ledger_of(shop, folder + "/memory/ledger.json");
    for (const std::string moment : {"start", "peak"}) {
      CAPTURE(moment);
      const nlohmann::json& all = ledger[moment];
      const auto device = all["device"].get<double>();
      CHECK(all["unexplained"].get<double>() >= 0);
      CHECK(all["unexplained"].get<double>() <= 0.03 * device);
      const std::int64_t whole = sum(all) + all["unexplained"].get<std::int64_t>() +
                                 all["cached"].get<std::int64_t>() + all["context"].get<std::int64_t>();
      CHECK(whole == all["device"]);
      CHECK(all["context"] > 0);
    }
    CHECK(ledger["peak"]["classes"]["activations"] > 0);
    CHECK(ledger["peak"]["layers"].size() > 3);
    CHECK(ledger["growth"]["layers"].empty());
    CHECK(ledger["peak"]["window"] == 3);
  }
}

}  // namespace gputrain::testing
