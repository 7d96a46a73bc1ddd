#include "device/nvml.h"

#include "device/nvml_api.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace gputrain::device {
namespace {

// Bits of nvmlDeviceGetCurrentClocksEventReasons that cost speed. Idling does not, and application clocks
// below the highest are normal on data-centre cards.
struct ThrottleReason {
  unsigned long long bit;
  const char* text;
};
constexpr std::array<ThrottleReason, 5> kThrottleReasons = {{
    {0x04, "power limit"},
    {0x08, "hardware slowdown"},
    {0x20, "temperature (driver)"},
    {0x40, "temperature (hardware)"},
    {0x80, "power supply brake"},
}};

// nvmlDriverModel_t, by its values. NVML calls TCC by its older name, WDM.
constexpr std::array<const char*, 3> kDriverModels = {"WDDM", "TCC", "MCDM"};

class NvmlLibrary final : public Nvml {
 public:
  explicit NvmlLibrary(const NvmlApi& api) : api_(api) {}
  ~NvmlLibrary() override {
    if (api_.shutdown != nullptr) api_.shutdown();
  }

  std::string driver_version() override {
    std::array<char, 128> text{};
    const bool known = api_.driver_version != nullptr &&
                       api_.driver_version(text.data(), static_cast<unsigned>(text.size())) == kNvmlSuccess;
    return known ? text.data() : "";
  }

  std::vector<NvmlDevice> all() override {
    unsigned count = 0;
    if (api_.count == nullptr || api_.count(&count) != kNvmlSuccess) return {};
    std::vector<NvmlDevice> gpus;
    for (unsigned i = 0; i < count; ++i) {
      NvmlDevice gpu = nullptr;
      if (api_.by_index(i, &gpu) == kNvmlSuccess) gpus.push_back(gpu);
    }
    return gpus;
  }

  NvmlDevice find(const std::string& uuid, const std::string& pci_bus) override {
    NvmlDevice gpu = nullptr;
    if (api_.by_uuid != nullptr && api_.by_uuid(uuid.c_str(), &gpu) == kNvmlSuccess) return gpu;
    if (api_.by_pci_bus != nullptr && api_.by_pci_bus(pci_bus.c_str(), &gpu) == kNvmlSuccess) return gpu;
    return nullptr;
  }

  NvmlFacts facts(NvmlDevice gpu) override {
    NvmlFacts facts;
    facts.name = text(api_.name, gpu);
    facts.uuid = text(api_.uuid, gpu);
    facts.memory = memory(gpu);
    facts.power_watts = watts(api_.power_milliwatts, gpu);
    facts.power_limit_watts = watts(api_.power_limit_milliwatts, gpu);
    facts.default_power_limit_watts = watts(api_.default_power_limit_milliwatts, gpu);
    facts.pcie_generation = number(api_.pcie_generation, gpu);
    facts.pcie_generation_max = number(api_.pcie_generation_max, gpu);
    facts.pcie_width = number(api_.pcie_width, gpu);
    facts.pcie_width_max = number(api_.pcie_width_max, gpu);
    facts.persistence_mode = flag(api_.persistence_mode, gpu);
    facts.display_attached = flag(api_.display_attached, gpu);
    facts.display_active = flag(api_.display_active, gpu);
    facts.driver_model = driver_model(gpu);
    facts.performance_state = performance_state(gpu);
    facts.clock_mhz = clock(api_.clock_mhz, gpu);
    facts.clock_max_mhz = clock(api_.clock_max_mhz, gpu);
    facts.temperature_celsius = temperature(gpu);
    facts.utilization_percent = utilization(gpu);
    facts.throttling = throttling(gpu);
    add_processes(api_.compute_processes, gpu, true, facts.processes);
    add_processes(api_.graphics_processes, gpu, false, facts.processes);
    return facts;
  }

  std::optional<std::int64_t> process_bytes(NvmlDevice gpu, unsigned pid) override {
    for (const NvmlProcessInfo& info : list(api_.compute_processes, gpu))
      if (info.pid == pid) return bytes_of(info);
    return std::nullopt;
  }

 private:
  static std::string text(NvmlApi::GetText get, NvmlDevice gpu) {
    std::array<char, 128> text{};
    const bool known =
        get != nullptr && get(gpu, text.data(), static_cast<unsigned>(text.size())) == kNvmlSuccess;
    return known ? text.data() : "";
  }

  static std::optional<int> number(NvmlApi::GetUnsigned get, NvmlDevice gpu) {
    unsigned value = 0;
    if (get == nullptr || get(gpu, &value) != kNvmlSuccess) return std::nullopt;
    return static_cast<int>(value);
  }

  static std::optional<bool> flag(NvmlApi::GetUnsigned get, NvmlDevice gpu) {
    const std::optional<int> value = number(get, gpu);
    if (!value) return std::nullopt;
    return *value != 0;
  }

  static std::optional<int> clock(NvmlApi::GetClock get, NvmlDevice gpu) {
    unsigned mhz = 0;
    if (get == nullptr || get(gpu, kNvmlClockOfMultiprocessors, &mhz) != kNvmlSuccess) return std::nullopt;
    return static_cast<int>(mhz);
  }

  static std::optional<double> watts(NvmlApi::GetUnsigned get, NvmlDevice gpu) {
    const std::optional<int> milliwatts = number(get, gpu);
    if (!milliwatts) return std::nullopt;
    return *milliwatts / 1000.0;
  }

  static std::optional<std::int64_t> bytes_of(const NvmlProcessInfo& info) {
    if (info.used_gpu_memory == kNvmlNotAvailable) return std::nullopt;
    return static_cast<std::int64_t>(info.used_gpu_memory);
  }

  std::optional<Capacity> memory(NvmlDevice gpu) const {
    NvmlMemory memory{};
    if (api_.memory == nullptr || api_.memory(gpu, &memory) != kNvmlSuccess) return std::nullopt;
    return Capacity{static_cast<std::int64_t>(memory.free), static_cast<std::int64_t>(memory.total)};
  }

  std::string driver_model(NvmlDevice gpu) const {
    unsigned current = 0;
    unsigned pending = 0;
    if (api_.driver_model == nullptr || api_.driver_model(gpu, &current, &pending) != kNvmlSuccess) return "";
    return current < kDriverModels.size() ? kDriverModels[current] : "";
  }

  std::optional<int> performance_state(NvmlDevice gpu) const {
    const std::optional<int> state = number(api_.performance_state, gpu);
    return state == static_cast<int>(kNvmlUnknownPerformanceState) ? std::nullopt : state;
  }

  std::optional<int> temperature(NvmlDevice gpu) const {
    unsigned celsius = 0;
    if (api_.temperature == nullptr || api_.temperature(gpu, 0, &celsius) != kNvmlSuccess)
      return std::nullopt;
    return static_cast<int>(celsius);
  }

  std::optional<int> utilization(NvmlDevice gpu) const {
    NvmlUtilization use{};
    if (api_.utilization == nullptr || api_.utilization(gpu, &use) != kNvmlSuccess) return std::nullopt;
    return static_cast<int>(use.gpu);
  }

  std::vector<std::string> throttling(NvmlDevice gpu) const {
    unsigned long long bits = 0;
    if (api_.throttle_reasons == nullptr || api_.throttle_reasons(gpu, &bits) != kNvmlSuccess) return {};
    std::vector<std::string> reasons;
    for (const ThrottleReason& reason : kThrottleReasons)
      if ((bits & reason.bit) != 0) reasons.emplace_back(reason.text);
    return reasons;
  }

  // NVML says how many there are when the room does not suffice; more may start before the next call.
  const std::vector<NvmlProcessInfo>& list(NvmlApi::ListProcesses get, NvmlDevice gpu) {
    found_.clear();
    if (get == nullptr) return found_;
    for (unsigned room = 16; room <= 4096;) {
      found_.resize(room);
      unsigned count = room;
      const int status = get(gpu, &count, found_.data());
      found_.resize(status == kNvmlSuccess ? count : 0);
      if (status != kNvmlInsufficientSize) break;
      room = 2 * (count > room ? count : room);
    }
    return found_;
  }

  // A program that computes and draws is in both lists of NVML.
  void add_processes(NvmlApi::ListProcesses get, NvmlDevice gpu, bool computes,
                     std::vector<GpuProcess>& processes) {
    for (const NvmlProcessInfo& info : list(get, gpu)) {
      const bool known = std::any_of(processes.begin(), processes.end(),
                                     [&](const GpuProcess& other) { return other.pid == info.pid; });
      if (!known) processes.push_back({info.pid, bytes_of(info), {}, computes});
    }
  }

  NvmlApi api_;
  std::vector<NvmlProcessInfo> found_;  // kept between calls: it is asked for at each log line
};

}  // namespace

std::unique_ptr<Nvml> make_nvml(const NvmlApi& api) {
  if (api.init == nullptr || api.by_index == nullptr || api.init() != kNvmlSuccess) return nullptr;
  return std::make_unique<NvmlLibrary>(api);
}

}  // namespace gputrain::device
