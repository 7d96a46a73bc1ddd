#include "device/environment.h"

#include "support/catch.h"
#include "support/gpu.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <string>

using gputrain::device::Environment;
using gputrain::device::Gpu;
using gputrain::device::Nvml;
using gputrain::device::NvmlDevice;
using gputrain::device::NvmlFacts;
using Json = nlohmann::json;

namespace {

// A driver with one card that CUDA does not list.
class SimulatedNvml final : public Nvml {
 public:
  std::string driver_version() override { return "535.183.01"; }
  std::vector<NvmlDevice> all() override { return {reinterpret_cast<NvmlDevice>(this)}; }
  NvmlDevice find(const std::string&, const std::string&) override { return nullptr; }
  NvmlFacts facts(NvmlDevice) override {
    NvmlFacts facts;
    facts.name = "NVIDIA GeForce RTX 3060";
    facts.uuid = "GPU-1";
    facts.memory = {9LL << 30, 12LL << 30};
    facts.power_limit_watts = 80.0;
    facts.display_active = true;
    facts.driver_model = "WDDM";
    facts.processes = {{1, 2LL << 30, ""}, {4000000000U, std::nullopt, ""}};
    return facts;
  }
  std::optional<std::int64_t> process_bytes(NvmlDevice, unsigned) override { return std::nullopt; }
};

}  // namespace

TEST_CASE("environment: this machine is described", "[device]") {
  const Environment environment = gputrain::device::inspect("1.2.3");
  CHECK(environment.gputrain == "1.2.3");
  CHECK_THAT(environment.libtorch, ContainsSubstring("2."));
  CHECK_THAT(environment.libtorch_build, ContainsSubstring("C++"));
  CHECK(environment.machine.cores >= 1);
  CHECK(environment.machine.memory.total > 0);
  CHECK_FALSE(environment.machine.system.empty());
  CHECK_FALSE(environment.machine.kernel.empty());
}

TEST_CASE("environment: a card that the driver knows and CUDA does not is listed without an index",
          "[device]") {
  SimulatedNvml nvml;
  const Environment environment = gputrain::device::inspect("1.2.3", &nvml);
  CHECK(environment.nvidia_driver == "535.183.01");
  REQUIRE_FALSE(environment.gpus.empty());
  const Gpu& gpu = environment.gpus.back();
  CHECK_FALSE(gpu.index.has_value());
  CHECK(gpu.name == "NVIDIA GeForce RTX 3060");
  CHECK(gpu.memory->total == 12LL << 30);
  CHECK_FALSE(gpu.nvml->processes[0].name.empty());  // process 1 is always there
  CHECK(gpu.nvml->processes[1].name.empty());        // no such process
}

TEST_CASE("environment: a build with CUDA knows what its kernels were compiled for", "[device]") {
  const Environment environment = gputrain::device::inspect("", nullptr);
  CHECK(environment.compiled_for.empty() == !environment.cuda.built);
  for (const int capability : environment.compiled_for) CHECK((capability >= 50 && capability < 200));
}

TEST_CASE("environment: variables that change what LibTorch does are taken down when set", "[device]") {
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  ::setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native", 1);
  const auto variables = gputrain::device::inspect("", nullptr).variables;
  ::unsetenv("NVIDIA_TF32_OVERRIDE");
  ::unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  CHECK(variables.at("NVIDIA_TF32_OVERRIDE") == "0");
  CHECK(variables.at("PYTORCH_CUDA_ALLOC_CONF") == "backend:native");
  CHECK(variables.count("HOME") == 0);
}

TEST_CASE("environment: its JSON holds what is known and leaves out what is not", "[device]") {
  Environment environment;
  environment.gputrain = "1.2.3";
  environment.libtorch = "2.11.0";
  environment.cuda.built = true;
  environment.cuda.runtime = 13000;
  environment.cuda.driver = 12020;
  environment.compiled_for = {86, 120};
  environment.machine.cores = 6;
  environment.machine.governor = "powersave";
  environment.machine.shared_memory = {1000, 2000};
  environment.variables["NVIDIA_TF32_OVERRIDE"] = "0";
  Gpu gpu;
  gpu.index = 0;
  gpu.name = "NVIDIA GeForce RTX 3060";
  gpu.capability = 86;
  gpu.nvml = SimulatedNvml().facts(nullptr);
  environment.gpus.push_back(gpu);
  const Json json = Json::parse(gputrain::device::to_json(environment));
  CHECK(json["libtorch"]["version"] == "2.11.0");
  CHECK(json["cuda"]["built"] == true);
  CHECK(json["cuda"]["runtime"] == "13.0");
  CHECK(json["cuda"]["driver_runs_up_to"] == "12.2");
  CHECK(json["cuda"]["compiled_for"] == Json({"8.6", "12.0"}));
  CHECK(json["machine"]["cores"] == 6);
  CHECK(json["machine"]["cpu_governor"] == "powersave");
  CHECK(json["machine"]["shared_memory"]["free"] == 1000);
  CHECK(json["variables"]["NVIDIA_TF32_OVERRIDE"] == "0");
  const Json& card = json["gpus"][0];
  CHECK(card["device"] == "cuda:0");
  CHECK(card["compute_capability"] == "8.6");
  CHECK(card["power_limit_watts"] == 80.0);
  CHECK(card["processes"][0]["bytes"] == 2LL << 30);
  CHECK(card["processes"][0]["computes"] == true);
  CHECK(card["display_active"] == true);
  CHECK(card["driver_model"] == "WDDM");
  CHECK_FALSE(card.contains("persistence_mode"));
  CHECK_FALSE(card.contains("power_watts"));
  CHECK_FALSE(card["processes"][1].contains("bytes"));
  CHECK_FALSE(json.contains("cudnn"));
}

TEST_CASE("environment: text that is no UTF-8 does not break its JSON", "[device]") {
  Environment environment;
  environment.variables["LD_PRELOAD"] = "/lib/\xff.so";
  CHECK(Json::accept(gputrain::device::to_json(environment)));
}

TEST_CASE("environment: the GPU is described by CUDA and the driver", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const Environment environment = gputrain::device::inspect("1.2.3");
  REQUIRE_FALSE(environment.gpus.empty());
  const Gpu& gpu = environment.gpus[0];
  CHECK(gpu.index == 0);
  CHECK(gpu.capability >= 75);
  CHECK(gpu.multiprocessors > 0);
  CHECK(gpu.memory->total > gpu.memory->free);
  CHECK(gpu.nvml.has_value());
  CHECK_FALSE(environment.cudnn.empty());
  CHECK_FALSE(environment.nccl.empty());
  CHECK_FALSE(environment.nvidia_driver.empty());
}
