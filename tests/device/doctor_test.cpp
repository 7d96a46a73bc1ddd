#include "device/doctor.h"

#include "support/catch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>

using gputrain::device::Diagnosis;
using gputrain::device::Environment;
using gputrain::device::Finding;
using gputrain::device::Gpu;
using gputrain::device::NvmlFacts;
using gputrain::device::Trial;
using Level = gputrain::device::Finding::Level;

namespace {

constexpr std::int64_t kGiB = 1LL << 30;

// A machine with nothing to complain about: one RTX 3060.
Environment healthy() {
  Environment environment;
  environment.gputrain = "1.2.3";
  environment.libtorch = "2.11.0";
  environment.cuda.built = true;
  environment.cuda.runtime = 13000;
  environment.cuda.driver = 13000;
  environment.cuda.capabilities = {86};
  environment.nvidia_driver = "580.65.06";
  environment.cudnn = "9.19.0";
  environment.nccl = "2.28.9";
  environment.pid = 77;
  environment.machine.cpu = "AMD Ryzen 5 5600X";
  environment.machine.cores = 12;
  environment.machine.memory = {32 * kGiB, 28 * kGiB};
  environment.machine.system = "Debian GNU/Linux 12 (bookworm)";
  environment.machine.kernel = "6.1.0";
  environment.machine.has_nvidia_gpu = true;
  Gpu gpu;
  gpu.index = 0;
  gpu.name = "NVIDIA GeForce RTX 3060";
  gpu.uuid = "GPU-1";
  gpu.capability = 86;
  gpu.memory = {12 * kGiB - kGiB / 2, 12 * kGiB};
  gpu.nvml = NvmlFacts();
  environment.gpus.push_back(gpu);
  return environment;
}

Environment without_gpu() {
  Environment environment = healthy();
  environment.cuda = {};
  environment.cudnn = "";
  environment.gpus.clear();
  environment.machine.has_nvidia_gpu = false;
  return environment;
}

Diagnosis diagnose(const Environment& environment) {
  return gputrain::device::diagnose(environment, Trial());
}

// The finding about `what`; one that found nothing when there is none.
Finding about(const Diagnosis& diagnosis, const std::string& what) {
  const auto found = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                  [&](const Finding& finding) { return finding.what == what; });
  return found == diagnosis.findings.end() ? Finding() : *found;
}

}  // namespace

TEST_CASE("doctor: a healthy machine trains on its GPU, and nothing is wrong", "[device]") {
  const Diagnosis diagnosis = diagnose(healthy());
  CHECK(diagnosis.will_train);
  CHECK(diagnosis.device == "cuda:0");
  CHECK(diagnosis.verdict == "yes, on cuda:0 (NVIDIA GeForce RTX 3060, 12.0 GiB)");
  for (const Finding& finding : diagnosis.findings) {
    CHECK(finding.level == Level::kOk);
    CHECK(finding.cost.empty());
    CHECK(finding.advice.empty());
  }
}

TEST_CASE("doctor: without a GPU the CPU trains, and that is said once", "[device]") {
  const Diagnosis diagnosis = diagnose(without_gpu());
  CHECK(diagnosis.will_train);
  CHECK(diagnosis.device == "cpu");
  CHECK(diagnosis.verdict == "yes, on the CPU");
  CHECK(about(diagnosis, "GPU").level == Level::kNote);
  CHECK(about(diagnosis, "GPU").found == "no NVIDIA GPU on this machine");
}

TEST_CASE("doctor: a GPU that this build cannot use is a problem with what to do", "[device]") {
  Environment environment = healthy();
  environment.cuda = {};
  environment.gpus[0].index.reset();
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(diagnosis.verdict == "yes, on the CPU");
  const Finding finding = about(diagnosis, "GPU");
  CHECK(finding.level == Level::kProblem);
  CHECK(finding.found == "this gputrain was built without CUDA");
  CHECK_THAT(finding.advice, ContainsSubstring("scripts/quickstart"));
  CHECK(about(diagnosis, "NVIDIA GeForce RTX 3060").found == "12.0 GiB, not visible to this program");
}

TEST_CASE("doctor: a GPU that this program does not see is one note, whatever its state", "[device]") {
  Environment environment = healthy();
  Gpu hidden = environment.gpus[0];
  hidden.index.reset();
  hidden.name = "NVIDIA H200";
  hidden.uuid = "GPU-2";
  hidden.memory->free = kGiB;
  hidden.nvml->processes = {{4242, 7 * kGiB, "python3"}};
  hidden.nvml->power_limit_watts = 80.0;
  hidden.nvml->default_power_limit_watts = 130.0;
  hidden.nvml->pcie_width = 4;
  hidden.nvml->pcie_width_max = 16;
  hidden.nvml->throttling = {"temperature (hardware)"};
  environment.gpus.push_back(hidden);
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(about(diagnosis, "NVIDIA H200").level == Level::kNote);
  CHECK(std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                      [](const Finding& finding) { return finding.level != Level::kOk; }) == 1);
}

TEST_CASE("doctor: an old driver is a problem that names both versions and the driver to install",
          "[device]") {
  Environment environment = healthy();
  environment.cuda.driver = 12020;
  environment.cuda.capabilities.clear();
  environment.gpus[0].index.reset();
  const Finding finding = about(diagnose(environment), "GPU");
  CHECK(finding.level == Level::kProblem);
  CHECK_THAT(finding.found, ContainsSubstring("12.2") && ContainsSubstring("13.0"));
  CHECK(finding.advice == "install driver 580 or newer");
}

TEST_CASE("doctor: a GPU on the bus without a driver is a problem", "[device]") {
  Environment environment = healthy();
  environment.cuda.driver = 0;
  environment.cuda.capabilities.clear();
  environment.gpus.clear();
  const Finding finding = about(diagnose(environment), "GPU");
  CHECK(finding.level == Level::kProblem);
  CHECK(finding.found == "no NVIDIA driver was found");
  CHECK(finding.advice == "install driver 580 or newer, and check it with nvidia-smi");
}

TEST_CASE("doctor: memory that others hold is reported with who holds it", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].memory->free = 4 * kGiB;
  environment.gpus[0].nvml->processes = {{77, kGiB, "gputrain"}, {4242, 7 * kGiB, "python3"}, {4243, {}, ""}};
  const Finding finding = about(diagnose(environment), "free memory of cuda:0");
  CHECK(finding.level == Level::kWarning);
  CHECK(finding.found == "4.0 GiB of 12.0 GiB; held by python3, pid 4242 with 7.0 GiB and pid 4243");
}

TEST_CASE("doctor: this process is not among those that hold memory", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->processes = {{77, kGiB, "gputrain"}};
  CHECK(about(diagnose(environment), "free memory of cuda:0").found.empty());
}

TEST_CASE("doctor: a power limit below the default is a warning with the line to type", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->power_limit_watts = 80.0;
  environment.gpus[0].nvml->default_power_limit_watts = 130.0;
  const Finding finding = about(diagnose(environment), "power limit of cuda:0");
  CHECK(finding.level == Level::kWarning);
  CHECK(finding.found == "80 W; the default is 130 W");
  CHECK_THAT(finding.advice, ContainsSubstring("sudo nvidia-smi -i GPU-1 -pl 130"));
}

TEST_CASE("doctor: a narrow PCIe link is a warning, a slow one on an idle GPU a note", "[device]") {
  Environment environment = healthy();
  NvmlFacts& facts = *environment.gpus[0].nvml;
  facts.pcie_width = 4;
  facts.pcie_width_max = 16;
  facts.pcie_generation = 1;
  facts.pcie_generation_max = 4;
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(about(diagnosis, "PCIe link of cuda:0").level == Level::kWarning);
  CHECK(about(diagnosis, "PCIe link of cuda:0").found == "x4; x16 is possible");
  CHECK(about(diagnosis, "PCIe generation of cuda:0").level == Level::kNote);
  CHECK_THAT(about(diagnosis, "PCIe generation of cuda:0").advice,
             ContainsSubstring("look again during a run"));
}

TEST_CASE("doctor: clocks that are held down are a warning with the reason", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->throttling = {"temperature (hardware)"};
  environment.gpus[0].nvml->temperature_celsius = 93;
  CHECK(about(diagnose(environment), "clocks of cuda:0").level == Level::kWarning);
  CHECK(about(diagnose(environment), "clocks of cuda:0").found ==
        "held down by temperature (hardware) at 93 °C");
}

TEST_CASE("doctor: a GPU before Ampere is told what its precisions are worth", "[device]") {
  Environment environment = healthy();
  environment.cuda.capabilities = {75};
  environment.gpus[0].capability = 75;
  CHECK(about(diagnose(environment), "precision on cuda:0").found == "compute capability 7.5");
}

TEST_CASE("doctor: missing cuDNN is a warning in a build with CUDA alone", "[device]") {
  Environment environment = healthy();
  environment.cudnn = "";
  CHECK(about(diagnose(environment), "cuDNN").level == Level::kWarning);
  CHECK(about(diagnose(without_gpu()), "cuDNN").found.empty());
}

TEST_CASE("doctor: variables that slow training down or change it are named with the cure", "[device]") {
  Environment environment = healthy();
  environment.variables = {
      {"CUDA_LAUNCH_BLOCKING", "1"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"OMP_NUM_THREADS", "1"}};
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(about(diagnosis, "CUDA_LAUNCH_BLOCKING").level == Level::kWarning);
  CHECK(about(diagnosis, "CUDA_LAUNCH_BLOCKING").advice == "unset CUDA_LAUNCH_BLOCKING");
  CHECK(about(diagnosis, "CUDA_VISIBLE_DEVICES").level == Level::kNote);
  CHECK(about(diagnosis, "OMP_NUM_THREADS").found == "1; 12 cores can be used");
  environment.variables = {{"CUDA_LAUNCH_BLOCKING", "0"}, {"OMP_NUM_THREADS", "12"}};
  CHECK(about(diagnose(environment), "CUDA_LAUNCH_BLOCKING").found.empty());
  CHECK(about(diagnose(environment), "OMP_NUM_THREADS").found.empty());
}

TEST_CASE("doctor: little disk is a warning, none at all means that nothing will train", "[device]") {
  Trial trial;
  trial.folder = {"runs", {3 * kGiB, 100 * kGiB}};
  Diagnosis diagnosis = gputrain::device::diagnose(healthy(), trial);
  CHECK(about(diagnosis, "disk space for runs").level == Level::kWarning);
  CHECK(diagnosis.will_train);
  trial.folder = {"runs", {1000, 100 * kGiB}};
  diagnosis = gputrain::device::diagnose(healthy(), trial);
  CHECK(about(diagnosis, "disk space for runs").level == Level::kProblem);
  CHECK_FALSE(diagnosis.will_train);
  CHECK(diagnosis.verdict == "no: the disk of runs is full");
}

TEST_CASE("doctor: a failed trial computation means that nothing will train there", "[device]") {
  Trial trial;
  trial.probe_failure = "a convolution on cuda:0 is off by 3; expected at most 0.0001";
  const Diagnosis diagnosis = gputrain::device::diagnose(healthy(), trial);
  CHECK_FALSE(diagnosis.will_train);
  CHECK(diagnosis.verdict == "no: a convolution on cuda:0 is off by 3; expected at most 0.0001");
  CHECK(about(diagnosis, "trial computation").level == Level::kProblem);
}

TEST_CASE("doctor: little free memory of the machine and a single core are told", "[device]") {
  Environment environment = healthy();
  environment.machine.cores = 1;
  environment.machine.memory = {4 * kGiB, kGiB};
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(about(diagnosis, "CPU").found == "AMD Ryzen 5 5600X, 1 core");
  CHECK(about(diagnosis, "CPU").level == Level::kNote);
  CHECK(about(diagnosis, "memory").level == Level::kWarning);
}

TEST_CASE("doctor: its text has a line for each finding and ends with the verdict", "[device]") {
  Environment environment = healthy();
  environment.variables = {{"CUDA_LAUNCH_BLOCKING", "1"}};
  CHECK(gputrain::device::to_text(environment, diagnose(environment)) ==
        "gputrain 1.2.3, LibTorch 2.11.0, CUDA 13.0, cuDNN 9.19.0, NCCL 2.28.9\n"
        "Debian GNU/Linux 12 (bookworm), Linux 6.1.0\n"
        "ok        CPU: AMD Ryzen 5 5600X, 12 cores\n"
        "ok        memory: 28.0 GiB of 32.0 GiB free\n"
        "ok        NVIDIA driver: 580.65.06, runs CUDA up to 13.0; this program uses 13.0\n"
        "ok        cuda:0: NVIDIA GeForce RTX 3060, 12.0 GiB\n"
        "warning   CUDA_LAUNCH_BLOCKING: 1\n"
        "          it costs: the host waits for every kernel\n"
        "          what to do: unset CUDA_LAUNCH_BLOCKING\n"
        "will it train: yes, on cuda:0 (NVIDIA GeForce RTX 3060, 12.0 GiB)\n");
}

TEST_CASE("doctor: its JSON holds verdict, findings and environment", "[device]") {
  const Environment environment = without_gpu();
  const auto json = nlohmann::json::parse(gputrain::device::to_json(environment, diagnose(environment)));
  CHECK(json["will_train"] == true);
  CHECK(json["device"] == "cpu");
  CHECK(json["verdict"] == "yes, on the CPU");
  CHECK(json["findings"][0]["level"] == "ok");
  CHECK(json["findings"][0]["what"] == "CPU");
  CHECK_FALSE(json["findings"][0].contains("cost"));
  CHECK(json["environment"]["machine"]["cores"] == 12);
}

TEST_CASE("doctor: trying out measures the disk of a folder that does not exist yet", "[device]") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / "gputrain-no-such-folder" / "runs").string();
  const Trial trial = gputrain::device::try_out(at::Device(at::kCPU), folder);
  CHECK(trial.probe_failure == std::nullopt);
  REQUIRE(trial.folder.has_value());
  CHECK(trial.folder->path == folder);
  CHECK(trial.folder->space.total >= trial.folder->space.free);
  CHECK_FALSE(std::filesystem::exists(folder));
}
