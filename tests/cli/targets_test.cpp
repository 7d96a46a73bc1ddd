#include "cli/workshop.h"

#include <nlohmann/json.hpp>

#include <sstream>
#include <vector>

namespace gputrain::testing {
namespace {

// 7 sequences of tokens, three of them without a target.
struct SequenceShop : Workshop {
  SequenceShop() {
    write("sequences.txt",
          "0 1 2 | 1 2 -100\n1 2 | -100 -100\n2 0 1 | 0 1 2\n0 | -100\n1 | 2\n2 1 | -100 0\n0 0 0 | -100 "
          "-100 -100\n");
    write("recipe.yaml",
          "name: points\n"
          "device: cpu\n"
          "micro_batch_size: 1\n"
          "epochs: 2\n"
          "model: { name: testing.tokens }\n"
          "data: { name: testing.sequences, path: sequences.txt, validation_path: sequences.txt }\n"
          "optimizer: { name: sgd, lr: 0.1 }\n"
          "logging: { log_every: 1 }\n");
  }
};

std::vector<nlohmann::json> steps_of(const std::string& text) {
  std::vector<nlohmann::json> steps;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    nlohmann::json record = nlohmann::json::parse(line);
    if (record.at("kind") == "step") steps.push_back(std::move(record));
  }
  return steps;
}

}  // namespace

TEST_CASE("run: windows without targets are skipped, counted and shown, and the run is done", "[cli]") {
  const SequenceShop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("skipped 6 of 14 windows, which had no target"));
  CHECK_THAT(outcome.err, ContainsSubstring("8 (6 skipped, 6 of them without targets)"));
  const auto summary = nlohmann::json::parse(shop.read("runs/points/summary.json"));
  CHECK(summary["steps"] == 8);
  CHECK(summary["skipped_without_targets"] == 6);
  CHECK(summary["first_step_seconds"] > 0);
  CHECK(summary["last_eval"]["loss"].is_number());
  const auto steps = steps_of(shop.read("runs/points/metrics.jsonl"));
  REQUIRE(steps.size() == 14);
  for (const nlohmann::json& step : steps) {
    const bool empty = step["targets"] == 0;
    CHECK(step["skipped"] == empty);
    CHECK(step["skip_reason"] == (empty ? nlohmann::json("no_targets") : nlohmann::json()));
    CHECK(step["loss"].is_null() == empty);
    CHECK_FALSE(step.contains("loss_text"));
  }
}

TEST_CASE("mistakes: data without any target, of training or validation", "[cli]") {
  const SequenceShop shop;
  shop.write("none.txt", "0 1 | -100 -100\n");
  for (const std::string key : {"path", "validation_path"}) {
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "data." + key + "=none.txt", "~epochs",
                                           "max_steps=5", "data.vocab_size=3", "data.length=3"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 3);
    CHECK_THAT(outcome.err, ContainsSubstring("none of the 1 "));
    CHECK_THAT(outcome.err,
               ContainsSubstring(": all are -100, the data.ignore_index; expected at least one"));
    CHECK_FALSE(shop.exists("runs"));
  }
}

TEST_CASE("mistakes: an objective that ignores other targets than the data", "[cli]") {
  const SequenceShop shop;
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "objective.ignore_index=0"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err,
             ContainsSubstring("objective.ignore_index is 0, the data marks targets to be ignored "
                               "by -100; expected -100"));
  // The data says first which of its targets are none.
  const Outcome other = shop.gputrain({"check", "recipe.yaml", "data.ignore_index=-1"});
  CHECK(other.exit_code == 3);
  CHECK_THAT(other.err,
             ContainsSubstring("sequences.txt:1: a target is -100; expected 0 to 999999999, or -1 for "
                               "none"));
}

TEST_CASE("run: an ignore_index for data that marks no targets is said to be inactive", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "objective.ignore_index=-1"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("note: inactive: objective.ignore_index (this data marks no "
                                            "targets to be ignored)"));
  const Outcome usual = shop.gputrain({"check", "recipe.yaml", "objective.ignore_index=-100"});
  CHECK_THAT(usual.err, !ContainsSubstring("ignore_index"));
  const Outcome of_class = shop.gputrain({"check", "recipe.yaml", "objective.ignore_index=1"});
  CHECK(of_class.exit_code == 2);
  CHECK_THAT(of_class.err, ContainsSubstring("expected a value that is no class, as -100"));
}

TEST_CASE("mistakes: a model of images for sequences", "[cli]") {
  const SequenceShop shop;
  const Outcome outcome = shop.gputrain({"check", "recipe.yaml", "model.name=mlp"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("model.name reads images, the data has sequences of tokens"));
}

TEST_CASE("mistakes: a vocabulary smaller than the tokens", "[cli]") {
  const SequenceShop shop;
  const Outcome of_data = shop.gputrain({"run", "recipe.yaml", "data.vocab_size=2"});
  CHECK(of_data.exit_code == 3);
  CHECK_THAT(of_data.err, ContainsSubstring("sequences.txt:1: a token is 2; expected 0 to 1"));
  const Outcome of_model = shop.gputrain({"run", "recipe.yaml", "model.vocab_size=2"});
  CHECK(of_model.exit_code == 2);
  CHECK_THAT(of_model.err, ContainsSubstring("model.vocab_size is 2, the data has tokens up to 2"));
  CHECK_FALSE(shop.exists("runs"));
}

TEST_CASE("mistakes: an accumulation that is no number of micro-batches", "[cli]") {
  const Workshop shop;
  for (const std::string value : {"0", "-1", "1.5", "two", "1e3"}) {
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "gradient_accumulation_steps=" + value});
    CAPTURE(value, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, ContainsSubstring("gradient_accumulation_steps is " + value));
    CHECK_FALSE(shop.exists("runs"));
  }
}

TEST_CASE("run: a window that was skipped leaves the windows after it as they would have been", "[cli]") {
  const auto sample_ids = [](const Workshop& shop) {
    std::vector<nlohmann::json> all;
    std::istringstream in(shop.read("runs/points/t"));
    for (std::string line; std::getline(in, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record.at("kind") == "micro_batch") all.push_back(record.at("sample_ids"));
    }
    return all;
  };
  Workshop clean, faulty;
  faulty.gputrain.set("GPUTRAIN_FAULT=nan@step=1,micro=1");
  for (const Workshop* shop : {&clean, &faulty}) {
    REQUIRE(shop->gputrain({"run", "recipe.yaml", "gradient_accumulation_steps=2", "logging.trace=t"})
                .exit_code == 0);
  }
  CHECK(sample_ids(clean).size() == 8);
  CHECK(sample_ids(faulty) == sample_ids(clean));
}

TEST_CASE("run: bfloat16 has no loss scale, and settings of one are said to be inactive", "[cli]") {
  for (const std::string precision : {"bf16-mixed", "bf16-true"}) {
    const Workshop shop;
    const Outcome outcome =
        shop.gputrain({"run", "recipe.yaml", "precision=" + precision, "loss_scale.init=1024"});
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(outcome.err, ContainsSubstring("inactive: loss_scale"));
    for (const nlohmann::json& step : steps_of(shop.read("runs/points/metrics.jsonl"))) {
      CHECK(step["loss_scale"].is_null());
    }
  }
}

TEST_CASE("run: weights of 16 bits are saved with normalisation in float32 and its counter in int64",
          "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "precision=bf16-true", "micro_batch_size=7",
                                         "model={name: convnet, stages: 1, width: 3}"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::string file = shop.read("runs/points/model.safetensors");
  const auto header =
      nlohmann::json::parse(file.substr(8, *reinterpret_cast<const std::uint64_t*>(file.data())));
  CHECK(header.at("conv1.weight").at("dtype") == "BF16");
  for (const char* name : {"bn1.weight", "bn1.running_mean", "bn1.running_var"}) {
    CHECK(header.at(name).at("dtype") == "F32");
  }
  CHECK(header.at("bn1.num_batches_tracked").at("dtype") == "I64");
}

}  // namespace gputrain::testing
