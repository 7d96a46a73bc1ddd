#include "device/nvml_api.h"

#include <dlfcn.h>

namespace gputrain::device {
namespace {

template <class Function>
void bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

NvmlApi bind_all(void* library) {
  NvmlApi api;
  bind(library, "nvmlInit_v2", api.init);
  bind(library, "nvmlShutdown", api.shutdown);
  bind(library, "nvmlSystemGetDriverVersion", api.driver_version);
  bind(library, "nvmlDeviceGetCount_v2", api.count);
  bind(library, "nvmlDeviceGetHandleByIndex_v2", api.by_index);
  bind(library, "nvmlDeviceGetHandleByUUID", api.by_uuid);
  bind(library, "nvmlDeviceGetHandleByPciBusId_v2", api.by_pci_bus);
  bind(library, "nvmlDeviceGetName", api.name);
  bind(library, "nvmlDeviceGetUUID", api.uuid);
  bind(library, "nvmlDeviceGetMemoryInfo", api.memory);
  bind(library, "nvmlDeviceGetUtilizationRates", api.utilization);
  bind(library, "nvmlDeviceGetTemperature", api.temperature);
  bind(library, "nvmlDeviceGetCurrentClocksEventReasons", api.throttle_reasons);
  if (api.throttle_reasons == nullptr)  // the name before driver 535
    bind(library, "nvmlDeviceGetCurrentClocksThrottleReasons", api.throttle_reasons);
  bind(library, "nvmlDeviceGetComputeRunningProcesses_v3", api.compute_processes);
  bind(library, "nvmlDeviceGetGraphicsRunningProcesses_v3", api.graphics_processes);
  bind(library, "nvmlDeviceGetPowerUsage", api.power_milliwatts);
  bind(library, "nvmlDeviceGetEnforcedPowerLimit", api.power_limit_milliwatts);
  bind(library, "nvmlDeviceGetPowerManagementDefaultLimit", api.default_power_limit_milliwatts);
  bind(library, "nvmlDeviceGetCurrPcieLinkGeneration", api.pcie_generation);
  bind(library, "nvmlDeviceGetMaxPcieLinkGeneration", api.pcie_generation_max);
  bind(library, "nvmlDeviceGetCurrPcieLinkWidth", api.pcie_width);
  bind(library, "nvmlDeviceGetMaxPcieLinkWidth", api.pcie_width_max);
  bind(library, "nvmlDeviceGetPersistenceMode", api.persistence_mode);
  bind(library, "nvmlDeviceGetDisplayMode", api.display_attached);
  bind(library, "nvmlDeviceGetDisplayActive", api.display_active);
  bind(library, "nvmlDeviceGetDriverModel_v2", api.driver_model);
  if (api.driver_model == nullptr)  // older drivers have its first version, with the same arguments
    bind(library, "nvmlDeviceGetDriverModel", api.driver_model);
  bind(library, "nvmlDeviceGetPerformanceState", api.performance_state);
  bind(library, "nvmlDeviceGetClockInfo", api.clock_mhz);
  bind(library, "nvmlDeviceGetMaxClockInfo", api.clock_max_mhz);
  return api;
}

}  // namespace

// The library stays open until the process ends: its functions may be in use through several Nvml.
std::unique_ptr<Nvml> open_nvml() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : make_nvml(bind_all(library));
}

}  // namespace gputrain::device
