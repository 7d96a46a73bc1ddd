#include "device/nvml.h"

#include "device/nvml_api.h"
#include "support/catch.h"
#include "support/gpu.h"

#include <cstring>
#include <string>
#include <vector>

using gputrain::device::make_nvml;
using gputrain::device::NvmlApi;
using gputrain::device::NvmlDevice;
using gputrain::device::NvmlFacts;
using gputrain::device::NvmlMemory;
using gputrain::device::NvmlProcessInfo;
using gputrain::device::NvmlUtilization;

namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;

// The library that the functions below play; one GPU.
struct Library {
  int open = 0;
  std::vector<NvmlProcessInfo> processes;  // that compute
  std::vector<NvmlProcessInfo> windows;
};
Library library;

NvmlDevice the_gpu() {
  return reinterpret_cast<NvmlDevice>(&library);
}

int text(char* out, unsigned size, const char* value) {
  std::strncpy(out, value, size);
  return kSuccess;
}

int list(const std::vector<NvmlProcessInfo>& processes, unsigned* count, NvmlProcessInfo* infos) {
  const auto there = static_cast<unsigned>(processes.size());
  const unsigned room = *count;
  *count = there;
  if (room < there) return gputrain::device::kNvmlInsufficientSize;
  for (unsigned i = 0; i < there; ++i) infos[i] = processes[i];
  return kSuccess;
}

template <unsigned value>
int number(NvmlDevice, unsigned* out) {
  *out = value;
  return kSuccess;
}

NvmlApi simulated() {
  library = Library();
  NvmlApi api;
  api.init = [] { return ++library.open, kSuccess; };
  api.shutdown = [] { return --library.open, kSuccess; };
  api.driver_version = [](char* out, unsigned size) { return text(out, size, "580.65.06"); };
  api.count = [](unsigned* count) { return *count = 1, kSuccess; };
  api.by_index = [](unsigned, NvmlDevice* gpu) { return *gpu = the_gpu(), kSuccess; };
  api.by_uuid = [](const char* uuid, NvmlDevice* gpu) {
    return std::string(uuid) == "GPU-1" ? (*gpu = the_gpu(), kSuccess) : kNotFound;
  };
  api.by_pci_bus = [](const char* bus, NvmlDevice* gpu) {
    return std::string(bus) == "00000000:65:00.0" ? (*gpu = the_gpu(), kSuccess) : kNotFound;
  };
  api.name = [](NvmlDevice, char* out, unsigned size) { return text(out, size, "NVIDIA GeForce RTX 3060"); };
  api.uuid = [](NvmlDevice, char* out, unsigned size) { return text(out, size, "GPU-1"); };
  api.memory = [](NvmlDevice, NvmlMemory* memory) { return *memory = {12000, 9000, 3000}, kSuccess; };
  api.utilization = [](NvmlDevice, NvmlUtilization*) { return kNotSupported; };
  api.temperature = [](NvmlDevice, int, unsigned* celsius) { return *celsius = 71, kSuccess; };
  api.throttle_reasons = [](NvmlDevice, unsigned long long* bits) {
    return *bits = 0x1 | 0x4 | 0x40, kSuccess;
  };
  api.compute_processes = [](NvmlDevice, unsigned* count, NvmlProcessInfo* infos) {
    return list(library.processes, count, infos);
  };
  api.graphics_processes = [](NvmlDevice, unsigned* count, NvmlProcessInfo* infos) {
    return list(library.windows, count, infos);
  };
  api.power_limit_milliwatts = number<80000>;
  api.default_power_limit_milliwatts = number<130500>;
  api.pcie_width = number<8>;
  api.pcie_width_max = number<16>;
  api.persistence_mode = number<0>;
  api.display_active = number<1>;
  api.display_attached = [](NvmlDevice, unsigned*) { return kNotSupported; };
  api.driver_model = [](NvmlDevice, unsigned*, unsigned*) { return kNotSupported; };
  api.performance_state = number<8>;
  api.clock_mhz = [](NvmlDevice, int clock, unsigned* mhz) { return *mhz = 210 + clock, kSuccess; };
  return api;
}

}  // namespace

TEST_CASE("nvml: facts are read, and what the driver lacks is absent", "[device]") {
  const auto nvml = make_nvml(simulated());
  REQUIRE(nvml != nullptr);
  CHECK(nvml->driver_version() == "580.65.06");
  const NvmlFacts facts = nvml->facts(the_gpu());
  CHECK(facts.name == "NVIDIA GeForce RTX 3060");
  CHECK(facts.uuid == "GPU-1");
  CHECK(facts.memory->free == 9000);
  CHECK(facts.memory->total == 12000);
  CHECK(facts.power_limit_watts == 80.0);
  CHECK(facts.default_power_limit_watts == 130.5);
  CHECK(facts.pcie_width == 8);
  CHECK(facts.pcie_width_max == 16);
  CHECK(facts.temperature_celsius == 71);
  CHECK_FALSE(facts.power_watts.has_value());          // no such function
  CHECK_FALSE(facts.utilization_percent.has_value());  // not supported by this GPU
  CHECK(facts.persistence_mode == false);
  CHECK(facts.display_active == true);
  CHECK_FALSE(facts.display_attached.has_value());
  CHECK(facts.driver_model.empty());
  CHECK(facts.performance_state == 8);
  CHECK(facts.clock_mhz == 211);  // of clock 1, the multiprocessors'
  CHECK_FALSE(facts.clock_max_mhz.has_value());
}

TEST_CASE("nvml: reasons for low clocks are named, and idling is none", "[device]") {
  const auto nvml = make_nvml(simulated());
  CHECK(nvml->facts(the_gpu()).throttling ==
        std::vector<std::string>{"power limit", "temperature (hardware)"});
}

TEST_CASE("nvml: driver models are named, and a state or model that is not known is absent", "[device]") {
  NvmlApi api = simulated();
  api.driver_model = [](NvmlDevice, unsigned* current, unsigned*) { return *current = 1, kSuccess; };
  api.performance_state = number<32>;
  CHECK(make_nvml(api)->facts(the_gpu()).driver_model == "TCC");
  CHECK_FALSE(make_nvml(api)->facts(the_gpu()).performance_state.has_value());
  api.driver_model = [](NvmlDevice, unsigned* current, unsigned*) { return *current = 9, kSuccess; };
  CHECK(make_nvml(api)->facts(the_gpu()).driver_model.empty());
}

TEST_CASE("nvml: a program that computes and draws is listed once, as one that computes", "[device]") {
  const auto nvml = make_nvml(simulated());
  library.processes = {{100, 1000, 0, 0}};
  library.windows = {{200, 500, 0, 0}, {100, 1000, 0, 0}};
  const auto processes = nvml->facts(the_gpu()).processes;
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].pid == 100);
  CHECK(processes[0].computes);
  CHECK(processes[1].pid == 200);
  CHECK_FALSE(processes[1].computes);
}

TEST_CASE("nvml: a GPU is found by UUID, else by PCI address, else not", "[device]") {
  const auto nvml = make_nvml(simulated());
  CHECK(nvml->find("GPU-1", "") == the_gpu());
  CHECK(nvml->find("MIG-7", "00000000:65:00.0") == the_gpu());
  CHECK(nvml->find("GPU-2", "00000000:01:00.0") == nullptr);
  CHECK(nvml->all() == std::vector<NvmlDevice>{the_gpu()});
}

TEST_CASE("nvml: memory of one process is found among more than there was room for", "[device]") {
  const auto nvml = make_nvml(simulated());
  for (unsigned pid = 100; pid < 140; ++pid) library.processes.push_back({pid, 1000ULL * pid, 0, 0});
  CHECK(nvml->process_bytes(the_gpu(), 137) == 137000);
  CHECK_FALSE(nvml->process_bytes(the_gpu(), 7).has_value());
  CHECK(nvml->facts(the_gpu()).processes.size() == 40);
}

TEST_CASE("nvml: a process whose memory the driver does not account for has none", "[device]") {
  const auto nvml = make_nvml(simulated());
  library.processes.push_back({100, gputrain::device::kNvmlNotAvailable, 0, 0});
  CHECK_FALSE(nvml->process_bytes(the_gpu(), 100).has_value());
  CHECK(nvml->facts(the_gpu()).processes.size() == 1);
}

TEST_CASE("nvml: it is shut down with its last user, and absent when it does not start", "[device]") {
  {
    const auto nvml = make_nvml(simulated());
    CHECK(library.open == 1);
  }
  CHECK(library.open == 0);
  NvmlApi broken = simulated();
  broken.init = [] { return 999; };
  CHECK(make_nvml(broken) == nullptr);
  CHECK(make_nvml(NvmlApi{}) == nullptr);
}

TEST_CASE("nvml: the driver's own library lists the GPU", "[device][gpu]") {
  if (!gputrain::test::has_gpu()) GPUTRAIN_SKIP("no GPU");
  const auto nvml = gputrain::device::open_nvml();
  REQUIRE(nvml != nullptr);
  CHECK(nvml->driver_version().size() >= 3);
  REQUIRE_FALSE(nvml->all().empty());
  const NvmlFacts facts = nvml->facts(nvml->all()[0]);
  CHECK_FALSE(facts.name.empty());
  CHECK(facts.uuid.compare(0, 4, "GPU-") == 0);
  CHECK(facts.memory->total > facts.memory->free);
}
