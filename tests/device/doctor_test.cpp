#include "device/doctor.h"

#include "device/doctor_support.h"
#include "device/environment_variables.h"
#include "support/catch.h"
#include "support/paths.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

using gputrain::device::Topic;
using gputrain::device::Trial;
using gputrain::testing::about;
using gputrain::testing::diagnose;
using gputrain::testing::Diagnosis;
using gputrain::testing::Environment;
using gputrain::testing::Finding;
using gputrain::testing::healthy;
using gputrain::testing::kGiB;
using gputrain::testing::Level;
using gputrain::testing::without_gpu;

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

TEST_CASE("doctor: a driver without a GPU is said, and where to look", "[device]") {
  Environment environment = without_gpu();
  environment.cuda.built = true;
  environment.cuda.runtime = 13000;
  environment.cuda.driver = 13000;
  environment.nvidia_driver = "580.65.06";
  environment.cuda.error = "no CUDA-capable device is detected";
  const Finding finding = about(diagnose(environment), "GPU");
  CHECK(finding.level == Level::kNote);
  CHECK(finding.found == "no NVIDIA GPU on this machine, though driver 580.65.06 is there");
  CHECK_THAT(finding.advice, ContainsSubstring("lspci"));
}

TEST_CASE("doctor: a driver whose module is missing, newer libraries, or none at all, is told apart",
          "[device]") {
  Environment environment = healthy();
  environment.cuda.capabilities.clear();
  environment.gpus.clear();
  environment.nvidia_driver = "";
  CHECK_THAT(about(diagnose(environment), "GPU").advice, ContainsSubstring("sudo modprobe nvidia"));
  environment.machine.nvidia_module = "575.57.08";
  CHECK_THAT(about(diagnose(environment), "GPU").advice,
             ContainsSubstring("restart the machine: driver 575.57.08 is loaded"));
  environment.cuda.driver = 0;
  CHECK_THAT(about(diagnose(environment), "GPU").advice, ContainsSubstring("--gpus all"));
}

TEST_CASE("doctor: under WSL the driver belongs into Windows", "[device]") {
  Environment environment = healthy();
  environment.machine.is_wsl = true;
  environment.cuda.driver = 12020;
  environment.cuda.capabilities.clear();
  environment.gpus.clear();
  CHECK(about(diagnose(environment), "GPU").advice ==
        "install driver 580 or newer in Windows, and none in WSL");
}

TEST_CASE("doctor: the driver's line tells what this program was compiled for", "[device]") {
  Environment environment = healthy();
  environment.compiled_for = {75, 86};
  CHECK(about(diagnose(environment), "NVIDIA driver").found ==
        "580.65.06, runs CUDA up to 13.0; this program uses 13.0, compiled for 7.5 and 8.6");
}

TEST_CASE("doctor: missing NCCL matters with several GPUs", "[device]") {
  Environment environment = healthy();
  environment.nccl = "";
  CHECK(about(diagnose(environment), "NCCL").found.empty());
  environment.cuda.capabilities = {86, 86};
  CHECK(about(diagnose(environment), "NCCL").level == Level::kNote);
}

TEST_CASE("doctor: a governor that saves power is worst where it pins the lowest clocks", "[device]") {
  Environment environment = healthy();
  environment.machine.governor = "powersave";
  environment.machine.frequency_driver = "acpi-cpufreq";
  Finding finding = about(diagnose(environment), "CPU governor");
  CHECK(finding.level == Level::kWarning);
  CHECK(finding.found == "powersave");
  CHECK_THAT(finding.advice, ContainsSubstring("echo performance | sudo tee"));
  environment.machine.frequency_driver = "intel_pstate";
  finding = about(diagnose(environment), "CPU governor");
  CHECK(finding.level == Level::kNote);
  CHECK(finding.found == "powersave; intel_pstate raises the clocks with the load");
  environment.machine.governor = "schedutil";
  CHECK(about(diagnose(environment), "CPU governor").found.empty());
}

TEST_CASE("doctor: 64 MiB of shared memory are a warning with several GPUs", "[device]") {
  Environment environment = healthy();
  environment.machine.shared_memory = {64 << 20, 64 << 20};
  CHECK(about(diagnose(environment), "shared memory").level == Level::kOk);
  CHECK(about(diagnose(environment), "shared memory").found == "64.0 MiB of 64.0 MiB free in /dev/shm");
  environment.cuda.capabilities = {86, 86};
  CHECK(about(diagnose(environment), "shared memory").level == Level::kWarning);
  CHECK_THAT(about(diagnose(environment), "shared memory").advice, ContainsSubstring("--shm-size=1g"));
}

TEST_CASE("doctor: missing cuDNN is a warning in a build with CUDA alone", "[device]") {
  Environment environment = healthy();
  environment.cudnn = "";
  CHECK(about(diagnose(environment), "cuDNN").level == Level::kWarning);
  CHECK(about(diagnose(without_gpu()), "cuDNN").found.empty());
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
        "ok        cuda:0: NVIDIA GeForce RTX 3060, 12.0 GiB, compute capability 8.6\n"
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
  CHECK(json["findings"][0]["topic"] == "cpu");
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

TEST_CASE("doctor: topics have names of their own", "[device]") {
  const auto topics = gputrain::device::all_topics();
  std::set<std::string> ids;
  for (const Topic topic : topics) {
    CHECK_FALSE(gputrain::device::topic_id(topic).empty());
    CHECK_FALSE(gputrain::device::topic_title(topic).empty());
    ids.insert(gputrain::device::topic_id(topic));
  }
  CHECK(ids.size() == topics.size());
  CHECK(gputrain::device::topic_title(Topic::kPowerLimit) == "power limit of cuda:N");
}

TEST_CASE("doctor: docs/doctor.md has a row for every topic and every variable", "[device]") {
  std::ifstream file(gputrain::testing::source_path() + "/docs/doctor.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const Topic topic : gputrain::device::all_topics())
    CHECK_THAT(text, ContainsSubstring("\n| " + gputrain::device::topic_title(topic) + " | `" +
                                       gputrain::device::topic_id(topic) + "` |"));
  for (const auto& variable : gputrain::device::watched_variables())
    CHECK_THAT(text, ContainsSubstring("\n| `" + std::string(variable.name) + "` |"));
}
