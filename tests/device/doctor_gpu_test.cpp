#include "device/doctor_support.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <algorithm>
#include <string>

using gputrain::device::Gpu;
using gputrain::device::NvmlFacts;
using gputrain::device::Trial;
using gputrain::testing::about;
using gputrain::testing::diagnose;
using gputrain::testing::Diagnosis;
using gputrain::testing::Environment;
using gputrain::testing::Finding;
using gputrain::testing::healthy;
using gputrain::testing::kGiB;
using gputrain::testing::Level;

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

TEST_CASE("doctor: the power limit of a laptop is left to its own profile", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].name = "NVIDIA GeForce RTX 3060 Laptop GPU";
  environment.gpus[0].nvml->power_limit_watts = 80.0;
  environment.gpus[0].nvml->default_power_limit_watts = 115.0;
  const Finding finding = about(diagnose(environment), "power limit of cuda:0");
  CHECK(finding.found == "80 W; the default is 115 W");
  CHECK_THAT(finding.advice, ContainsSubstring("nvidia-powerd"));
  CHECK(finding.advice.find("-pl") == std::string::npos);
}

TEST_CASE("doctor: a narrow PCIe link is a warning, a slow one on an idle GPU a note", "[device]") {
  Environment environment = healthy();
  NvmlFacts& facts = *environment.gpus[0].nvml;
  facts.pcie_width = 4;
  facts.pcie_width_max = 16;
  facts.pcie_generation = 1;
  facts.pcie_generation_max = 4;
  facts.performance_state = 8;
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(about(diagnosis, "PCIe link of cuda:0").level == Level::kWarning);
  CHECK(about(diagnosis, "PCIe link of cuda:0").found == "x4; x16 is possible");
  CHECK(about(diagnosis, "PCIe generation of cuda:0").level == Level::kNote);
  CHECK_THAT(about(diagnosis, "PCIe generation of cuda:0").advice,
             ContainsSubstring("look again during a run"));
}

TEST_CASE("doctor: a slow PCIe link under load is a warning with its share of the speed", "[device]") {
  Environment environment = healthy();
  NvmlFacts& facts = *environment.gpus[0].nvml;
  facts.pcie_generation = 1;
  facts.pcie_generation_max = 4;
  facts.performance_state = 2;
  const Finding finding = about(diagnose(environment), "PCIe generation of cuda:0");
  CHECK(finding.level == Level::kWarning);
  CHECK(finding.found == "1; 4 is possible");
  CHECK_THAT(finding.cost, ContainsSubstring("1/8 of the speed"));
  facts.performance_state.reset();
  CHECK(about(diagnose(environment), "PCIe generation of cuda:0").level == Level::kNote);
  facts.utilization_percent = 80;
  CHECK(about(diagnose(environment), "PCIe generation of cuda:0").level == Level::kWarning);
}

TEST_CASE("doctor: what was seen while the GPU computed comes before what was seen when it was idle",
          "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->pcie_generation = 1;
  environment.gpus[0].nvml->pcie_generation_max = 4;
  Trial trial;
  trial.at_work = environment.gpus[0].nvml;
  trial.at_work->pcie_generation = 4;
  trial.at_work->throttling = {"temperature (driver)"};
  const Diagnosis diagnosis = gputrain::device::diagnose(environment, trial);
  CHECK(about(diagnosis, "PCIe generation of cuda:0").found.empty());
  CHECK(about(diagnosis, "clocks of cuda:0").found == "held down by temperature (driver)");
}

TEST_CASE("doctor: links and clocks that are as they should be are no finding", "[device]") {
  Environment environment = healthy();
  NvmlFacts& facts = *environment.gpus[0].nvml;
  facts.pcie_width = facts.pcie_width_max = 16;
  facts.pcie_generation = facts.pcie_generation_max = 4;
  facts.power_limit_watts = facts.default_power_limit_watts = 170.0;
  facts.persistence_mode = true;
  facts.display_active = false;
  facts.display_attached = true;
  facts.performance_state = 0;
  CHECK(diagnose(environment).findings.size() == diagnose(healthy()).findings.size());
}

TEST_CASE("doctor: clocks that are held down are a warning with the reason", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->throttling = {"temperature (hardware)"};
  environment.gpus[0].nvml->temperature_celsius = 93;
  CHECK(about(diagnose(environment), "clocks of cuda:0").level == Level::kWarning);
  CHECK(about(diagnose(environment), "clocks of cuda:0").found ==
        "held down by temperature (hardware) at 93 °C");
}

TEST_CASE("doctor: clocks are told beside what holds them down, and heat asks for air", "[device]") {
  Environment environment = healthy();
  NvmlFacts& facts = *environment.gpus[0].nvml;
  facts.throttling = {"power limit", "temperature (driver)"};
  facts.temperature_celsius = 87;
  facts.clock_mhz = 1200;
  facts.clock_max_mhz = 2100;
  const Finding finding = about(diagnose(environment), "clocks of cuda:0");
  CHECK(finding.level == Level::kWarning);
  CHECK(finding.found == "held down by power limit and temperature (driver) at 87 °C, 1200 of 2100 MHz");
  CHECK_THAT(finding.advice, ContainsSubstring("let more air through"));
}

TEST_CASE("doctor: the power limit alone bounds most cards and is a note", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->throttling = {"power limit"};
  CHECK(about(diagnose(environment), "clocks of cuda:0").level == Level::kNote);
}

TEST_CASE("doctor: a weak power supply and an unknown slowdown have advice of their own", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->throttling = {"hardware slowdown", "power supply brake"};
  CHECK_THAT(about(diagnose(environment), "clocks of cuda:0").advice, ContainsSubstring("power plug"));
  environment.gpus[0].nvml->throttling = {"hardware slowdown"};
  CHECK(about(diagnose(environment), "clocks of cuda:0").advice == "see nvidia-smi -q -d PERFORMANCE");
}

TEST_CASE("doctor: another process that holds 9 GiB of 12 is a warning with the line that ends it",
          "[device]") {
  Environment environment = healthy();
  environment.gpus[0].memory->free = 2 * kGiB;
  environment.gpus[0].nvml->processes = {{4242, 9 * kGiB, "python3"}};
  const Finding finding = about(diagnose(environment), "free memory of cuda:0");
  CHECK(finding.level == Level::kWarning);
  CHECK(finding.found == "2.0 GiB of 12.0 GiB; held by python3, pid 4242 with 9.0 GiB");
  CHECK_THAT(finding.advice, ContainsSubstring("kill 4242"));
}

TEST_CASE("doctor: windows are named once memory is short, and are not called slow", "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->processes = {{900, kGiB / 4, "Xorg", false}};
  CHECK(about(diagnose(environment), "free memory of cuda:0").found.empty());
  environment.gpus[0].memory->free = 9 * kGiB;
  const Finding finding = about(diagnose(environment), "free memory of cuda:0");
  CHECK(finding.found == "9.0 GiB of 12.0 GiB; held by Xorg, pid 900 with 256.0 MiB");
  CHECK(finding.cost == "batches must fit into what is left");
  CHECK(finding.advice == "close windows that are not needed");
}

TEST_CASE("doctor: a desktop on the GPU is a note with what it holds", "[device]") {
  Environment environment = healthy();
  NvmlFacts& facts = *environment.gpus[0].nvml;
  facts.display_active = true;
  facts.display_attached = true;
  CHECK(about(diagnose(environment), "display on cuda:0").found == "active, on a screen");
  CHECK_THAT(about(diagnose(environment), "display on cuda:0").cost, ContainsSubstring("some hundred MiB"));
  facts.processes = {{900, kGiB / 2, "Xorg", false}, {901, kGiB / 4, "firefox", false}};
  facts.display_attached = false;
  const Finding finding = about(diagnose(environment), "display on cuda:0");
  CHECK(finding.level == Level::kNote);
  CHECK(finding.found == "active, without a screen");
  CHECK_THAT(finding.cost, ContainsSubstring("768.0 MiB"));
  CHECK_THAT(finding.advice, ContainsSubstring("sudo systemctl isolate multi-user.target"));
}

TEST_CASE("doctor: persistence mode that is off is a note, unless a desktop keeps the driver loaded",
          "[device]") {
  Environment environment = healthy();
  environment.gpus[0].nvml->persistence_mode = false;
  CHECK(about(diagnose(environment), "persistence mode of cuda:0").level == Level::kNote);
  CHECK(about(diagnose(environment), "persistence mode of cuda:0").advice ==
        "sudo nvidia-smi -i GPU-1 -pm 1");
  environment.gpus[0].nvml->display_active = true;
  CHECK(about(diagnose(environment), "persistence mode of cuda:0").found.empty());
}

TEST_CASE("doctor: WSL means WDDM, with or without NVML", "[device]") {
  Environment environment = healthy();
  environment.machine.is_wsl = true;
  environment.gpus[0].nvml->persistence_mode = false;
  const Finding finding = about(diagnose(environment), "driver model of cuda:0");
  CHECK(finding.level == Level::kNote);
  CHECK(finding.found == "WDDM, through WSL");
  CHECK_THAT(finding.advice, ContainsSubstring("Sysmem Fallback"));
  CHECK(about(diagnose(environment), "persistence mode of cuda:0").found.empty());
  environment.gpus[0].nvml.reset();
  CHECK(about(diagnose(environment), "driver model of cuda:0").found == "WDDM, through WSL");
}

TEST_CASE("doctor: TCC is well, and no driver model is no finding", "[device]") {
  Environment environment = healthy();
  CHECK(about(diagnose(environment), "driver model of cuda:0").found.empty());
  environment.gpus[0].nvml->driver_model = "TCC";
  CHECK(about(diagnose(environment), "driver model of cuda:0").level == Level::kOk);
  CHECK(about(diagnose(environment), "driver model of cuda:0").found == "TCC");
}

TEST_CASE("doctor: a card of capability 6.1 alone means the CPU, and why", "[device]") {
  Environment environment = healthy();
  environment.cuda.capabilities = {61};
  environment.gpus[0].capability = 61;
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(diagnosis.verdict == "yes, on the CPU");
  CHECK(about(diagnosis, "GPU").level == Level::kProblem);
  CHECK(about(diagnosis, "GPU").found ==
        "cuda:0 has compute capability 6.1, for which CUDA 13.0 has no code any more");
}

TEST_CASE("doctor: of several GPUs each has its own findings, and one too old is passed over", "[device]") {
  Environment environment = healthy();
  environment.cuda.capabilities = {61, 86, 86};
  Gpu old = environment.gpus[0];
  old.name = "NVIDIA GeForce GTX 1080";
  old.capability = 61;
  Gpu first = environment.gpus[0];
  first.index = 1;
  Gpu second = environment.gpus[0];
  second.index = 2;
  second.nvml->throttling = {"temperature (hardware)"};
  environment.gpus = {old, first, second};
  const Diagnosis diagnosis = diagnose(environment);
  CHECK(diagnosis.device == "cuda:1");
  CHECK(about(diagnosis, "code for cuda:0").found ==
        "compute capability 6.1; CUDA 13.0 has no code for it any more");
  CHECK(about(diagnosis, "code for cuda:0").level == Level::kNote);
  CHECK(about(diagnosis, "clocks of cuda:1").found.empty());
  CHECK_FALSE(about(diagnosis, "clocks of cuda:2").found.empty());
}

TEST_CASE("doctor: a program that was compiled for newer GPUs alone does not train on this one", "[device]") {
  Environment environment = healthy();
  environment.compiled_for = {90};
  Diagnosis diagnosis = diagnose(environment);
  CHECK(about(diagnosis, "code for cuda:0").level == Level::kProblem);
  CHECK(about(diagnosis, "code for cuda:0").found ==
        "compute capability 8.6; this program was compiled for 9.0");
  CHECK_FALSE(diagnosis.will_train);
  CHECK(diagnosis.verdict == "no: this program was not compiled for cuda:0");

  environment.compiled_for = {75, 90};  // that of 7.5 may hold PTX
  diagnosis = diagnose(environment);
  CHECK(about(diagnosis, "code for cuda:0").level == Level::kWarning);
  CHECK(diagnosis.will_train);

  environment.compiled_for = {75, 80};  // code for 8.0 runs on 8.6
  CHECK(about(diagnose(environment), "code for cuda:0").found.empty());
}

TEST_CASE("doctor: a GPU before Ampere is told what its precisions are worth", "[device]") {
  Environment environment = healthy();
  environment.cuda.capabilities = {75};
  environment.gpus[0].capability = 75;
  CHECK(about(diagnose(environment), "precision on cuda:0").found == "compute capability 7.5");
}

TEST_CASE("doctor: trying out looks at the GPU right after it computed", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const Trial trial = gputrain::device::try_out(gputrain::device::choose_device("auto"), ".");
  CHECK(trial.probe_failure == std::nullopt);
  REQUIRE(trial.at_work.has_value());
  CHECK_FALSE(trial.at_work->name.empty());
}
