#include "cli/json_lines.h"
#include "cli/workshop.h"
#include "support/gpu.h"

namespace gputrain::testing {
namespace {

// A residual network over a few random images, trained twice on `device`: what both traces show.
void check_equal_runs(const std::string& device, const std::string& precision, const std::string& stem) {
  const Workshop shop;
  shop.write("resnet.yaml",
             "max_steps: 4\nmicro_batch_size: 4\ngradient_accumulation_steps: 2\n"
             "deterministic: true\n"
             "model: { name: resnet18 }\n"
             "data: { name: synthetic, shape: [3, 33, 33], num_classes: 5, samples: 22, pool: 8 }\n"
             "optimizer: { name: adamw, lr: 1e-3 }\nmax_grad_norm: 1\n"
             "logging: { trace: trace.jsonl }\n");
  std::vector<std::string> traces;
  for (const std::string folder : {"a", "b"}) {
    const Outcome outcome = shop.gputrain({"run", "resnet.yaml", "device=" + device, "precision=" + precision,
                                           "model.stem=" + stem, "output_dir=" + folder});
    CAPTURE(device, precision, stem, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    traces.push_back(shop.read(folder + "/trace.jsonl"));
  }
  const auto updates = of_kind(json_lines(traces[0]), "update");
  REQUIRE(updates.size() == 4);
  CHECK(updates[0]["parameters"] != updates[3]["parameters"]);
  CHECK(traces[0] == traces[1]);
}

}  // namespace

TEST_CASE("deterministic: two runs are equal bit for bit", "[cli]") {
  for (const char* precision : {"fp32", "bf16-mixed"}) check_equal_runs("cpu", precision, "small");
}

TEST_CASE("deterministic: two runs on the GPU are equal bit for bit", "[cli][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  for (const char* precision : {"fp32", "bf16-mixed"}) {
    for (const char* stem : {"small", "imagenet"}) check_equal_runs("cuda", precision, stem);
  }
}

// A residual network with dropout and a frozen layer, trained with what it keeps, and computing it again.
void check_equal_recomputation(const std::string& device, const std::string& precision, int steps,
                               const std::vector<std::string>& forms) {
  const Workshop shop;
  shop.write("resnet.yaml",
             "micro_batch_size: 4\ngradient_accumulation_steps: 2\ndeterministic: true\n"
             "model: { name: resnet18, stem: small, dropout: 0.2 }\nfreeze: layer1.0.conv1.*\n"
             "data: { name: synthetic, shape: [3, 9, 9], num_classes: 5, samples: 22, pool: 8 }\n"
             "logging: { trace: trace.jsonl }\n");
  std::string expected;
  for (const std::string& how : forms) {
    const Outcome outcome =
        shop.gputrain({"run", "resnet.yaml", "--restart", "max_steps=" + std::to_string(steps),
                       "device=" + device, "precision=" + precision, "activation_checkpointing=" + how});
    CAPTURE(device, precision, how, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const std::string trace = shop.read("runs/resnet/trace.jsonl");
    if (expected.empty()) expected = trace;
    CHECK(trace == expected);
  }
  CHECK(of_kind(json_lines(expected), "update").size() == static_cast<std::size_t>(steps));
}

TEST_CASE("recompute: the trace is the same whatever is computed again", "[cli]") {
  for (const char* precision : {"fp32", "bf16-mixed", "bf16-true"}) {
    check_equal_recomputation("cpu", precision, 3,
                              {"none", "full", "{every: 3}", "selective", "[layer1, layer2.*, fc]"});
  }
}

TEST_CASE("recompute: on the GPU, over 50 steps with loss scaling and without", "[cli][gpu]") {
  if (!test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  for (const char* precision : {"fp32", "fp16-mixed"}) {
    check_equal_recomputation("cuda", precision, 50, {"none", "full", "selective"});
  }
}

TEST_CASE("recompute: layers and blocks that are not there are told by their key", "[cli]") {
  const Workshop shop;
  shop.write("mlp.yaml", Workshop::recipe() + "activation_checkpointing: [layers.9]\n");
  const Outcome layers = shop.gputrain({"check", "mlp.yaml"});
  CHECK(layers.exit_code == 2);
  CHECK_THAT(layers.err,
             ContainsSubstring("activation_checkpointing.match has layers.9, and no layer has such a "
                               "name"));
  const Outcome blocks =
      shop.gputrain({"check", "mlp.yaml", "activation_checkpointing=full", "model.hidden=[]"});
  CHECK(blocks.exit_code == 2);
  CHECK_THAT(blocks.err,
             ContainsSubstring("activation_checkpointing is full, and this model repeats no blocks"));
}

TEST_CASE("deterministic: what contradicts it is refused with its place", "[cli]") {
  const Workshop shop;
  shop.write("both.yaml", Workshop::recipe() + "deterministic: true\ncuda: { cudnn_benchmark: true }\n");
  const Outcome outcome = shop.gputrain({"check", "both.yaml"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err,
             ContainsSubstring("both.yaml:10:26: cuda.cudnn_benchmark is true, which chooses by timing, and "
                               "deterministic is true; expected one of them to be false"));
  CHECK(shop.gputrain({"check", "both.yaml", "cuda.cudnn_benchmark=auto"}).exit_code == 0);
  CHECK(shop.gputrain({"check", "both.yaml", "deterministic=false"}).exit_code == 0);
}

}  // namespace gputrain::testing
