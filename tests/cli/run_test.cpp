#include "cli/json_lines.h"
#include "cli/workshop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

namespace gputrain::testing {
namespace {

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 600 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace

TEST_CASE("run: trains, and the run directory holds all that was promised", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find('\r') == std::string::npos);
  CHECK_THAT(outcome.err, ContainsSubstring("step 8/8 | loss "));
  CHECK_THAT(outcome.err, ContainsSubstring("validation at step 4 (epoch 1.0): loss "));
  CHECK_THAT(outcome.err, ContainsSubstring("points: done, all epochs trained"));
  CHECK(shop.listing("runs/points") ==
        std::vector<std::string>{".lock", "env.json", "metrics.jsonl", "model.safetensors", "recipe.yaml",
                                 "resolved.yaml", "summary.json", "tb", "train.log"});
  CHECK(shop.read("runs/points/recipe.yaml") == Workshop::recipe());

  const auto lines = json_lines(shop.read("runs/points/metrics.jsonl"));
  const auto steps = of_kind(lines, "step");
  REQUIRE(steps.size() == 8);  // 4 windows an epoch: 2, 2, 2, 1
  CHECK(steps[3].at("samples") == 1);
  CHECK(steps[7].at("samples_total") == 14);
  CHECK(of_kind(lines, "eval").size() == 2);
}

TEST_CASE("run: csv and tensorboard are written when asked for", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "logging.csv=true", "logging.tensorboard=false"}).exit_code ==
          0);
  CHECK(shop.exists("runs/points/metrics.csv"));
  CHECK_FALSE(shop.exists("runs/points/tb"));
}

TEST_CASE("run: the same recipe gives the same weights again", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "output_dir=a"}).exit_code == 0);
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "output_dir=b"}).exit_code == 0);
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "output_dir=c", "seed=2"}).exit_code == 0);
  CHECK(shop.read("a/model.safetensors") == shop.read("b/model.safetensors"));
  CHECK(shop.read("a/model.safetensors") != shop.read("c/model.safetensors"));
}

TEST_CASE("run: the trace shows every micro-batch and update", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "logging.trace=trace.jsonl", "gradient_accumulation_steps=2"})
              .exit_code == 0);
  const auto lines = json_lines(shop.read("runs/points/trace.jsonl"));
  const auto micro_batches = of_kind(lines, "micro_batch");
  REQUIRE(micro_batches.size() == 8);
  std::vector<std::int64_t> first_epoch;
  for (std::size_t i = 0; i < 4; ++i) {
    for (const auto& id : micro_batches[i].at("sample_ids")) first_epoch.push_back(id);
  }
  std::sort(first_epoch.begin(), first_epoch.end());
  CHECK(first_epoch == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
  const auto updates = of_kind(lines, "update");
  REQUIRE(updates.size() == 4);
  CHECK(updates[1].at("targets") == 3);
  CHECK(updates[0].at("parameters") != updates[1].at("parameters"));
}

TEST_CASE(
    "run: a finished run says so and is left alone; another recipe is refused; --restart keeps the old one",
    "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml"}).exit_code == 0);
  const std::string weights = shop.read("runs/points/model.safetensors");

  const Outcome again = shop.gputrain({"run", "recipe.yaml"});
  CHECK(again.exit_code == 0);
  CHECK(again.err == "runs/points: this run is finished; --restart trains it anew\n");

  const Outcome other = shop.gputrain({"run", "recipe.yaml", "optimizer.lr=0.2"});
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring("holds a run of another recipe"));
  CHECK_THAT(other.err, ContainsSubstring("--restart"));
  CHECK(shop.read("runs/points/model.safetensors") == weights);

  REQUIRE(shop.gputrain({"run", "recipe.yaml", "optimizer.lr=0.2", "--restart"}).exit_code == 0);
  CHECK(shop.read("runs/points.1/model.safetensors") == weights);
  CHECK(shop.read("runs/points/model.safetensors") != weights);
}

TEST_CASE("run: SIGTERM and SIGINT end it after the step, with the weights and exit codes 143 and 130",
          "[cli]") {
  for (const auto& [signal, code] : {std::pair{SIGTERM, 143}, std::pair{SIGINT, 130}}) {
    const Workshop shop;
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "epochs=100000000"}, [&](pid_t child) {
      wait_for(
          [&] { return shop.read("runs/points/metrics.jsonl").find("\"step\":30,") != std::string::npos; });
      ::kill(child, signal);
    });
    INFO(outcome.err);
    CHECK(outcome.exit_code == code);
    CHECK(shop.exists("runs/points/model.safetensors"));
    CHECK_THAT(outcome.err, ContainsSubstring("stopped by SIG"));

    const Outcome again = shop.gputrain({"run", "recipe.yaml", "epochs=100000000"});
    CHECK(again.exit_code == 2);
    CHECK_THAT(again.err,
               ContainsSubstring("runs/points: holds an unfinished run; --restart moves it aside"));
  }
}

TEST_CASE("run: a folder that another process trains in is refused, also with --restart", "[cli]") {
  const Workshop shop;
  shop.gputrain({"run", "recipe.yaml", "epochs=100000000"}, [&](pid_t child) {
    wait_for([&] { return shop.exists("runs/points/metrics.jsonl"); });
    const Outcome second = shop.gputrain({"run", "recipe.yaml", "epochs=100000000", "--restart"});
    CHECK(second.exit_code == 2);
    CHECK_THAT(second.err, ContainsSubstring("another process is training here now"));
    ::kill(child, SIGTERM);
  });
}

TEST_CASE("run: a loss that is not a number ends it with 5, names the step, and keeps the weights before it",
          "[cli]") {
  Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "max_steps=2", "output_dir=before"}).exit_code == 0);
  shop.gputrain.set("GPUTRAIN_FAULT=nan@step=3,micro=0");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "on_nonfinite=stop"});
  CHECK(outcome.exit_code == 5);
  CHECK_THAT(outcome.err, ContainsSubstring("window 3 (samples 4 to 5 of the run): loss nan"));
  const auto tensors = [&](const std::string& folder) {
    const std::string file = shop.read(folder + "/model.safetensors");
    return file.substr(file.find("}}") + 2);
  };
  CHECK(tensors("runs/points") == tensors("before"));
}

TEST_CASE("run: an update that is not finite is left out, and neither the schedule nor the data lose a step",
          "[cli]") {
  const auto updates = [](const Workshop& shop) {
    return of_kind(json_lines(shop.read("runs/points/t")), "update");
  };
  const std::vector<std::string> command{"run",         "recipe.yaml",
                                         "max_steps=6", "logging.trace=t",
                                         "~epochs",     "lr_scheduler={name: linear, total_steps: 6}"};
  Workshop clean, faulty;
  faulty.gputrain.set("GPUTRAIN_FAULT=nan@step=2,micro=0");
  REQUIRE(clean.gputrain(command).exit_code == 0);
  const Outcome outcome = faulty.gputrain(command);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("skipped window 2 (samples 2 to 3 of the run): loss nan"));
  CHECK_THAT(outcome.err, ContainsSubstring("6 (1 skipped)"));
  const auto good = updates(clean), bad = updates(faulty);
  REQUIRE(good.size() == 6);
  REQUIRE(bad.size() == 7);
  CHECK(bad[1]["skipped"] == true);
  CHECK(bad[1]["step"] == 1);
  CHECK(bad[1]["parameters"] == bad[0]["parameters"]);
  for (std::size_t step = 0; step < 6; ++step) {
    const auto& applied = bad[step == 0 ? 0 : step + 1];
    CHECK(applied["step"] == step + 1);
    CHECK(applied["learning_rate"] == good[step]["learning_rate"]);
  }
}

TEST_CASE("run: updates that are never finite end it with 5, with the weights of the last good one",
          "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=nan@micro=0");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "max_skipped=3", "epochs=50"});
  CHECK(outcome.exit_code == 5);
  CHECK_THAT(outcome.err, ContainsSubstring("window 3 (samples 4 to 5 of the run): loss nan"));
  CHECK_THAT(outcome.err, ContainsSubstring("the last of 3 in a row; the weights are those after step 0"));
}

TEST_CASE("run: the weights it ends with are those it names, however often it logs", "[cli]") {
  std::vector<std::string> weights;
  for (const std::string log_every : {"1", "100"}) {
    Workshop shop;
    shop.gputrain.set("GPUTRAIN_FAULT=nan@step=3,micro=0");
    const Outcome outcome =
        shop.gputrain({"run", "recipe.yaml", "max_skipped=1", "logging.log_every=" + log_every});
    CHECK(outcome.exit_code == 5);
    CHECK_THAT(outcome.err, ContainsSubstring("; not seen again when the window was run a second time"));
    CHECK_THAT(outcome.err, ContainsSubstring("the weights are those after step 2"));
    weights.push_back(shop.read("runs/points/model.safetensors"));
  }
  CHECK(weights[0] == weights[1]);
}

TEST_CASE("run: a step is validated once, also when windows after it are skipped", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=nan@step=3,micro=0;nan@step=4,micro=0");
  REQUIRE(shop.gputrain({"run", "recipe.yaml", "validation.every=2", "logging.log_every=1"}).exit_code == 0);
  std::set<int> steps;
  for (const auto& eval : of_kind(json_lines(shop.read("runs/points/metrics.jsonl")), "eval")) {
    CHECK(steps.insert(eval["step"].get<int>()).second);
  }
  CHECK(steps.count(2) == 1);
}

TEST_CASE("run: a loss scale that is far too large finds its value by skipping", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "precision=fp16-mixed", "epochs=8",
                                         "loss_scale={init: 1e12, max: 1e12, backoff_factor: 1e-3}"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  const auto summary = nlohmann::json::parse(shop.read("runs/points/summary.json"));
  CHECK(summary["skipped"].get<int>() > 0);
  CHECK(summary["steps"].get<int>() + summary["skipped"].get<int>() == 32);
  CHECK_THAT(outcome.err, ContainsSubstring(" | scale "));
}

TEST_CASE("run: every precision trains, and says so in what it writes", "[cli]") {
  for (const std::string precision :
       {"fp32", "tf32", "fp16-mixed", "bf16-mixed", "fp16-true", "bf16-true", "auto"}) {
    const Workshop shop;
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "precision=" + precision, "epochs=20"});
    CAPTURE(precision, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const auto summary = nlohmann::json::parse(shop.read("runs/points/summary.json"));
    CHECK(summary["final_loss"].get<double>() < 0.3);
    const std::string weights = shop.read("runs/points/model.safetensors").substr(0, 400);
    const std::string type = precision == "fp16-true" ? "F16" : precision == "bf16-true" ? "BF16" : "F32";
    CHECK_THAT(weights, ContainsSubstring("\"dtype\":\"" + type + "\""));
    CHECK_THAT(shop.read("runs/points/resolved.yaml"),
               ContainsSubstring("precision: " + (precision == "auto" ? "fp32" : precision)));
  }
}

TEST_CASE("run: how a batch is split over forward passes does not change what is learned", "[cli]") {
  for (const std::string precision : {"fp32", "bf16-mixed", "fp16-mixed", "bf16-true", "fp16-true"}) {
    std::vector<double> losses;
    for (const auto& [micro, steps] : std::vector<std::pair<int, int>>{{4, 1}, {2, 2}, {1, 4}}) {
      const Workshop shop;
      const Outcome outcome = shop.gputrain(
          {"run", "recipe.yaml", "precision=" + precision, "micro_batch_size=" + std::to_string(micro),
           "gradient_accumulation_steps=" + std::to_string(steps), "epochs=5"});
      CAPTURE(precision, micro, outcome.err);
      REQUIRE(outcome.exit_code == 0);
      losses.push_back(nlohmann::json::parse(shop.read("runs/points/summary.json"))["final_loss"]);
    }
    CAPTURE(precision, losses);
    const double tolerance = precision == "fp32" ? 1e-6 : 2e-2;  // 16-bit sums round in another order
    for (const double loss : losses) CHECK(std::abs(loss - losses[0]) < tolerance * losses[0]);
  }
}

// The most of a kind of memory over the log lines of these steps.
std::int64_t most_memory(const std::vector<nlohmann::json>& steps, const std::string& kind, int after,
                         int until) {
  std::int64_t most = 0;
  for (const nlohmann::json& step : steps) {
    const int number = step.at("step");
    if (number > after && number <= until) most = std::max<std::int64_t>(most, step.at(kind));
  }
  return most;
}

TEST_CASE("run: memory is flat over 2,000 steps with everything on", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain(
      {"run", source_path() + "/scripts/bench/memory_flat.yaml", "device=cpu", "output_dir=run"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto summary = nlohmann::json::parse(shop.read("run/summary.json"));
  REQUIRE(summary.at("steps") == 2000);
  REQUIRE(summary.at("skipped") > 10);
  const auto steps = of_kind(json_lines(shop.read("run/metrics.jsonl")), "step");
  for (const std::string kind : {"memory_allocated_bytes", "memory_allocated_peak_bytes"}) {
    CAPTURE(kind);
    CHECK(most_memory(steps, kind, 500, 2000) == most_memory(steps, kind, 0, 500));
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these keep memory of their own
  const std::string resident = "memory_device_bytes";
  CHECK(most_memory(steps, resident, 500, 2000) - most_memory(steps, resident, 0, 500) < (2 << 20));
#endif
}

TEST_CASE("run: a log's reader that goes away does not end the run", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain.with_closed_stderr()({"run", "recipe.yaml"});
  CHECK(outcome.exit_code == 0);
  CHECK(shop.exists("runs/points/model.safetensors"));
}

TEST_CASE("run: what ended a run is in its log and once on the terminal, and its weights are kept", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=oom@step=5,phase=forward");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  CHECK(outcome.exit_code == 4);
  CHECK(outcome.err.find("out of memory") == outcome.err.rfind("out of memory"));
  CHECK_THAT(shop.read("runs/points/train.log"), ContainsSubstring("failed: step 5: out of memory"));
  CHECK_THAT(shop.read("runs/points/metrics.jsonl"), ContainsSubstring("failed: step 5: out of memory"));
  CHECK(shop.exists("runs/points/model.safetensors"));
}

TEST_CASE("run: out of memory in a validation is told as such", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=oom@phase=validation");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.err, ContainsSubstring("gputrain: validation after step 4: out of memory on cpu"));
  CHECK_THAT(outcome.err, ContainsSubstring("Less is needed with a smaller validation.micro_batch_size"));
}

TEST_CASE(
    "run: a sample that cannot be read in mid-run ends it as an error of the data, and weights are kept",
    "[cli]") {
  for (const std::string split : {"training", "validation"}) {
    CAPTURE(split);
    Workshop shop;
    shop.gputrain.set("GPUTRAIN_FAULT=load@item=1,phase=" + split);
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
    CHECK(outcome.exit_code == 3);
    const std::string expected = "sample 1 of the " + split + " data: cannot be read";
    CHECK_THAT(outcome.err, ContainsSubstring("gputrain: " + expected));
    CHECK_THAT(shop.read("runs/points/train.log"), ContainsSubstring("failed: " + expected));
    if (split == "validation") CHECK(shop.exists("runs/points/model.safetensors"));
  }
}

TEST_CASE("run: a folder whose recipe cannot be read is refused, naming --restart", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml"}).exit_code == 0);
  shop.write("runs/points/resolved.yaml", "");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("runs/points: holds a run whose resolved.yaml cannot be read"));
  CHECK_THAT(outcome.err, ContainsSubstring("--restart moves it aside"));
}

TEST_CASE("run: max_time alone ends a run", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "--unset", "epochs", "max_time=200ms"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("points: done, max_time reached"));
}

TEST_CASE("run: a validation is cut short by a signal", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=stop@step=4;sleep@phase=validation,ms=1");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  CHECK(outcome.exit_code == 143);
  CHECK(of_kind(json_lines(shop.read("runs/points/metrics.jsonl")), "eval").empty());
}

TEST_CASE("run: how often it logs does not change what the trace shows", "[cli]") {
  const Workshop shop;
  const auto updates = [&](const std::string& folder, const std::string& log_every) {
    const Outcome outcome =
        shop.gputrain({"run", "recipe.yaml", "output_dir=" + folder, "logging.log_every=" + log_every,
                       "logging.trace=more/trace.jsonl"});
    REQUIRE(outcome.exit_code == 0);
    return of_kind(json_lines(shop.read(folder + "/more/trace.jsonl")), "update");
  };
  CHECK(updates("often", "1") == updates("seldom", "100"));
}

TEST_CASE("run: the folder's spelling and what is logged do not make another run", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.gputrain({"run", "recipe.yaml"}).exit_code == 0);
  for (const char* other : {"output_dir=runs/points/", "output_dir=./runs/points", "logging.log_every=7"}) {
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml", other});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.err, ContainsSubstring("this run is finished"));
  }
  CHECK(shop.gputrain({"run", "recipe.yaml", "--restart", "--output-dir", "runs/points/"}).exit_code == 0);
  CHECK(shop.exists("runs/points.1/model.safetensors"));
}

TEST_CASE("run: batch norm counts the passes that were trained on, and no others", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=nan@step=3,micro=0");
  // 7 samples of 1x1 px as one batch: each update is one pass.
  const Outcome outcome = shop.gputrain(
      {"run", "recipe.yaml", "model.name=resnet18", "micro_batch_size=7", "epochs=5", "on_nonfinite=stop"});
  REQUIRE(outcome.exit_code == 5);
  const std::string file = shop.read("runs/points/model.safetensors");
  const auto header_size = *reinterpret_cast<const std::uint64_t*>(file.data());
  const auto header = nlohmann::json::parse(file.substr(8, header_size));
  const std::size_t begin = header.at("bn1.num_batches_tracked").at("data_offsets").at(0);
  std::int64_t passes = 0;
  std::memcpy(&passes, file.data() + 8 + header_size + begin, sizeof passes);
  CHECK(passes == 2);
}

TEST_CASE("run: out of memory ends with 4", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=oom@step=2,phase=backward");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.err, ContainsSubstring("gputrain: step 2: out of memory on cpu"));
  CHECK_THAT(outcome.err, ContainsSubstring(". Less is needed with a smaller micro_batch_size"));
}

TEST_CASE("cli: on a terminal one line of progress is drawn over itself", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=sleep@phase=step,ms=150");
  const Outcome run = shop.gputrain.on_terminal()({"run", "recipe.yaml", "logging.log_every=100"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err, ContainsSubstring("\r"));
  CHECK_THAT(run.err, ContainsSubstring("%) | loss "));
  CHECK_THAT(run.err, ContainsSubstring("eta "));
  CHECK_THAT(run.err, ContainsSubstring("points: done, all epochs trained"));
  // What stays in the log has no such lines.
  CHECK_THAT(shop.read("runs/points/train.log"), !ContainsSubstring("\r"));
  CHECK_THAT(shop.read("runs/points/train.log"), !ContainsSubstring("%) | loss"));
}

}  // namespace gputrain::testing
