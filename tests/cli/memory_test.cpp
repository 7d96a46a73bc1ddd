// Limits of memory, and what is said where it runs out, of the whole program.
#include "cli/json_lines.h"
#include "cli/workshop.h"
#include "support/gpu.h"
#include "support/python.h"

#include <algorithm>

using namespace gputrain;
using testing::Outcome;
using testing::Workshop;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

// 37 MiB of weights, of which training makes gradients and momenta; batches are small.
std::string wide(const std::string& more) {
  return "name: wide\n"
         "device: cpu\n"
         "micro_batch_size: 4\n"
         "max_steps: 3\n"
         "model: { name: mlp, hidden: [3000, 3000] }\n"
         "data: { name: testing.linear, path: points.txt }\n"
         "optimizer: { name: adamw }\n"
         "logging: { log_every: 1 }\n" +
         more;
}

// What the process holds before training, as an error about a limit says it.
[[maybe_unused]] std::int64_t held_before_training(Workshop& shop) {
  shop.write("least.yaml", wide("memory: { limit: 1MiB }\n"));
  const Outcome outcome = shop.gputrain({"run", "least.yaml"});
  REQUIRE(outcome.exit_code == 2);
  const std::string mark = "this process holds ";
  return static_cast<std::int64_t>(std::stod(outcome.err.substr(outcome.err.find(mark) + mark.size()))) *
         kMiB;
}

std::string limit_of(std::int64_t bytes) {
  return "memory: { limit: " + std::to_string(bytes) + "B }\n";
}

}  // namespace

TEST_CASE("memory: a limit that cannot be kept is refused where it stands, and leaves nothing behind",
          "[cli]") {
  Workshop shop;
  shop.write("a.yaml", wide("memory: { limit: 999TiB }\n"));
  Outcome outcome = shop.gputrain({"run", "a.yaml"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("a.yaml:9:18: memory.limit is 999.0 TiB, and cpu has ") &&
                              ContainsSubstring("; expected at most that, or ~"));
  CHECK(shop.gputrain({"check", "a.yaml"}).exit_code == 2);
  shop.write("a.yaml", wide("memory: { limit: 2MiB }\n"));
  outcome = shop.gputrain({"run", "a.yaml"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(
      outcome.err,
      ContainsSubstring("a.yaml:9:18: memory.limit is 2.0 MiB, and before training this process holds ") &&
          ContainsSubstring(" on cpu; expected more than "));
  CHECK(!shop.exists("runs"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these keep what is freed
TEST_CASE("memory: out of it below a limit ends with 4 and says what needs less", "[cli]") {
  Workshop shop;
  const std::int64_t held = held_before_training(shop);
  // Room for the weights and their gradients, and not for the two averages of adamw.
  shop.write("a.yaml", wide(limit_of(held + (48 + 90) * kMiB)));
  const Outcome outcome = shop.gputrain({"run", "a.yaml"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.err, ContainsSubstring("out of memory on cpu: ") &&
                              ContainsSubstring(" were asked for, memory.limit is ") &&
                              ContainsSubstring(", which leaves ") &&
                              ContainsSubstring(" to tensors; tensors held "));
  CHECK_THAT(outcome.err, !ContainsSubstring("internal error") && !ContainsSubstring("Exception raised"));
}

TEST_CASE("memory: a run below its limit shows it in the step line and in the records", "[cli]") {
  Workshop shop;
  const std::int64_t limit = held_before_training(shop) + 600 * kMiB + 1;
  shop.write("a.yaml", wide(limit_of(limit)));
  const Outcome outcome = shop.gputrain({"run", "a.yaml"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto lines = testing::json_lines(shop.read("runs/wide/metrics.jsonl"));
  CHECK(lines.at(0).at("memory_limit_bytes") == limit);
  for (const auto& line : lines) {
    if (line.at("kind") == "step") CHECK(line.at("memory_device_peak_bytes") <= limit);
  }
  CHECK_THAT(shop.read("runs/wide/resolved.yaml"), ContainsSubstring(std::to_string(limit) + "B "));
}
#endif

TEST_CASE("memory: a run stays the same run with another limit", "[cli]") {
  Workshop shop;
  shop.write("a.yaml", wide(""));
  REQUIRE(shop.gputrain({"run", "a.yaml"}).exit_code == 0);
  const Outcome outcome = shop.gputrain({"run", "a.yaml", "memory.limit=4GiB", "cuda.empty_cache=never"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("this run is finished"));
}

TEST_CASE("memory: keys that need a GPU are told as inactive on the CPU", "[cli]") {
  Workshop shop;
  shop.write("a.yaml", wide("memory: { snapshot: true }\n"
                            "cuda: { allocator: expandable, empty_cache: every_step }\n"));
  const Outcome outcome = shop.gputrain({"run", "a.yaml"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err,
             ContainsSubstring("inactive on the CPU: cuda.allocator, cuda.empty_cache, memory.snapshot"));
  CHECK(!shop.exists("runs/wide/memory"));
}

TEST_CASE("memory: what needs less is said of what can still need less alone", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=oom@step=2,phase=optimizer");
  CHECK_THAT(shop.gputrain({"run", "recipe.yaml"}).err,
             ContainsSubstring(". Less is needed with a smaller micro_batch_size (now 2) with more "
                               "gradient_accumulation_steps (now 1); activation_checkpointing: full; or a "
                               "precision of 16 bits\n"));
  CHECK_THAT(shop.gputrain({"run", "recipe.yaml", "--restart", "micro_batch_size=1", "precision=bf16-true",
                            "activation_checkpointing=full"})
                 .err,
             ContainsSubstring(". Less is needed with a smaller model or smaller samples\n"));
  CHECK_THAT(shop.gputrain({"run", "recipe.yaml", "--restart", "micro_batch_size=1", "precision=bf16-mixed",
                            "optimizer.name=adamw", "ema.decay=0.9"})
                 .err,
             ContainsSubstring(". Less is needed with activation_checkpointing: full; precision: bf16-true; "
                               "an optimizer with less state (now "
                               "adamw); or ema.decay: 0\n"));
}

namespace {

// A small convolutional network whose batches are most of what it takes.
std::string convnet(const std::string& more) {
  return "name: conv\n"
         "device: cuda:0\n"
         "micro_batch_size: 256\n"
         "max_steps: 200\n"
         "model: { name: resnet18 }\n"
         "data: { name: synthetic, shape: [3, 96, 96], num_classes: 10, pool: 64 }\n"
         "optimizer: { name: sgd, lr: 0.01 }\n"
         "logging: { log_every: 1, tensorboard: false }\n" +
         more;
}

struct Peaks {
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
  std::int64_t device = 0;
  bool is_estimate = false;
};

Peaks peaks_of(const Workshop& shop) {
  Peaks peaks;
  for (const auto& line :
       testing::of_kind(testing::json_lines(shop.read("runs/conv/metrics.jsonl")), "step")) {
    peaks.allocated = std::max(peaks.allocated, line.at("memory_allocated_peak_bytes").get<std::int64_t>());
    peaks.reserved = std::max(peaks.reserved, line.at("memory_reserved_peak_bytes").get<std::int64_t>());
    peaks.device = std::max(peaks.device, line.at("memory_device_peak_bytes").get<std::int64_t>());
    peaks.is_estimate = peaks.is_estimate || line.at("memory_device_is_estimate").get<bool>();
  }
  return peaks;
}

Peaks free_run(Workshop& shop, const std::string& more) {
  shop.write("a.yaml", convnet(more));
  const Outcome outcome = shop.gputrain({"run", "a.yaml", "max_steps=20"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return peaks_of(shop);
}

}  // namespace

TEST_CASE("memory on the GPU: below any limit the driver sees no more than that in 200 steps", "[cli][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  for (const char* allocator : {"default", "expandable"}) {
    const std::string setting = std::string("cuda: { allocator: ") + allocator + ", graphs: false }\n";
    Workshop shop;
    const Peaks need = free_run(shop, setting);
    if (need.is_estimate) GPUTRAIN_SKIP("the driver reports nothing for this process");
    const std::int64_t beside = need.device - need.reserved;
    // With room to spare, with hardly any, and with too little.
    const std::vector<std::pair<std::int64_t, int>> limits{
        {need.device + 128 * kMiB, 0},
        {beside + need.allocated + (need.reserved - need.allocated) / 2 + 128 * kMiB, -1},
        {beside + need.allocated * 6 / 10 + 128 * kMiB, 4}};
    for (const auto& [limit, expected] : limits) {
      shop.write("a.yaml", convnet(setting + limit_of(limit)));
      const Outcome outcome = shop.gputrain({"run", "a.yaml", "--restart"});
      CAPTURE(allocator, limit, need.device, need.reserved, need.allocated, outcome.err);
      if (expected >= 0) CHECK(outcome.exit_code == expected);
      CHECK((outcome.exit_code == 0 || outcome.exit_code == 4));
      CHECK(peaks_of(shop).device <= limit);
      CHECK_THAT(outcome.err, !ContainsSubstring("which is above"));
      if (outcome.exit_code == 4) {
        CHECK_THAT(outcome.err, ContainsSubstring("out of memory on cuda:0: ") &&
                                    ContainsSubstring(" were asked for, memory.limit is ") &&
                                    ContainsSubstring(" to tensors; tensors held ") &&
                                    ContainsSubstring(", the allocator has reserved ") &&
                                    ContainsSubstring("a smaller micro_batch_size (now 256)"));
      }
    }
  }
}

TEST_CASE("memory on the GPU: captured passes stay below a limit, too", "[cli][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  Workshop shop;
  const Peaks need = free_run(shop, "cuda: { graphs: true }\n");
  if (need.is_estimate) GPUTRAIN_SKIP("the driver reports nothing for this process");
  const std::int64_t limit = need.device + 128 * kMiB;
  shop.write("a.yaml", convnet("cuda: { graphs: true }\n" + limit_of(limit)));
  const Outcome outcome = shop.gputrain({"run", "a.yaml", "--restart"});
  CAPTURE(outcome.err, need.device);
  CHECK(outcome.exit_code == 0);
  CHECK(peaks_of(shop).device <= limit);
}

TEST_CASE("memory on the GPU: a limit below what CUDA takes by itself is refused where it stands",
          "[cli][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  Workshop shop;
  shop.write("a.yaml", convnet(limit_of(20 * kMiB)));
  const Outcome outcome = shop.gputrain({"run", "a.yaml"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("a.yaml:9:18: memory.limit is 20.0 MiB, and before training this "
                                            "process holds ") &&
                              ContainsSubstring(" on cuda:0 for CUDA; expected more than "));
}

TEST_CASE("memory on the GPU: every word of empty_cache gives the same weights", "[cli][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  Workshop shop;
  std::string first;
  for (const char* word : {"never", "on_oom", "before_validation", "every_step"}) {
    shop.write("a.yaml", convnet(std::string("validation: { every: 2 }\ndeterministic: true\ncuda: "
                                             "{ graphs: false, empty_cache: ") +
                                 word + " }\n"));
    const Outcome outcome =
        shop.gputrain({"run", "a.yaml", "--restart", "max_steps=6", "data.validation_samples=64"});
    CAPTURE(word, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const std::string weights = shop.read("runs/conv/model.safetensors");
    if (first.empty()) first = weights;
    CHECK(weights == first);
  }
}

TEST_CASE("memory on the GPU: a snapshot is written at the end, and where memory runs out", "[cli][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  Workshop shop;
  shop.write("a.yaml", convnet("memory: { snapshot: true }\n"));
  Outcome outcome = shop.gputrain({"run", "a.yaml", "max_steps=3"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("runs/conv/memory/snapshot.pickle"));
  if (testing::test_python() != nullptr) {
    CHECK(testing::run_python("cli/load_snapshot.py", shop.folder / "runs/conv/memory/snapshot.pickle")
              .exit_code == 0);
  }
  shop.gputrain.set("GPUTRAIN_FAULT=oom@step=2,phase=backward");
  outcome = shop.gputrain({"run", "a.yaml", "--restart"});
  CHECK(outcome.exit_code == 4);
  CHECK(shop.exists("runs/conv/memory/snapshot.pickle"));
}
