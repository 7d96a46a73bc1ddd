#include "device/environment_json.h"

#include "device/environment.h"

#include <utility>

namespace gputrain::device {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

void put(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

void put(Json& json, const char* key, const std::optional<Capacity>& value) {
  if (!value) return;
  json[key]["free"] = value->free;
  json[key]["total"] = value->total;
}

Json json_of(const GpuProcess& process) {
  Json json;
  json["pid"] = process.pid;
  put(json, "name", process.name);
  put(json, "bytes", process.bytes);
  json["computes"] = process.computes;
  return json;
}

void put_nvml(Json& json, const NvmlFacts& facts) {
  put(json, "power_watts", facts.power_watts);
  put(json, "power_limit_watts", facts.power_limit_watts);
  put(json, "default_power_limit_watts", facts.default_power_limit_watts);
  put(json, "pcie_generation", facts.pcie_generation);
  put(json, "pcie_generation_max", facts.pcie_generation_max);
  put(json, "pcie_width", facts.pcie_width);
  put(json, "pcie_width_max", facts.pcie_width_max);
  put(json, "temperature_celsius", facts.temperature_celsius);
  put(json, "utilization_percent", facts.utilization_percent);
  if (!facts.throttling.empty()) json["throttling"] = facts.throttling;
  put(json, "persistence_mode", facts.persistence_mode);
  put(json, "display_attached", facts.display_attached);
  put(json, "display_active", facts.display_active);
  put(json, "driver_model", facts.driver_model);
  put(json, "performance_state", facts.performance_state);
  put(json, "clock_mhz", facts.clock_mhz);
  put(json, "clock_max_mhz", facts.clock_max_mhz);
  for (const GpuProcess& process : facts.processes) json["processes"].push_back(json_of(process));
}

Json json_of(const Gpu& gpu) {
  Json json;
  if (gpu.index) json["device"] = "cuda:" + std::to_string(*gpu.index);
  put(json, "name", gpu.name);
  put(json, "uuid", gpu.uuid);
  if (gpu.capability > 0) json["compute_capability"] = capability_text(gpu.capability);
  if (gpu.multiprocessors > 0) json["multiprocessors"] = gpu.multiprocessors;
  put(json, "memory", gpu.memory);
  if (gpu.nvml) put_nvml(json, *gpu.nvml);
  return json;
}

Json json_of(const CudaState& cuda) {
  Json json;
  json["built"] = cuda.built;
  if (cuda.runtime > 0) json["runtime"] = cuda_version_text(cuda.runtime);
  if (cuda.driver > 0) json["driver_runs_up_to"] = cuda_version_text(cuda.driver);
  put(json, "error", cuda.error);
  return json;
}

Json json_of(const Machine& machine) {
  Json json;
  put(json, "cpu", machine.cpu);
  json["cores"] = machine.cores;
  json["memory"]["available"] = machine.memory.available;
  json["memory"]["total"] = machine.memory.total;
  put(json, "cpu_governor", machine.governor);
  put(json, "cpu_frequency_driver", machine.frequency_driver);
  put(json, "shared_memory", machine.shared_memory);
  put(json, "system", machine.system);
  put(json, "kernel", machine.kernel);
  json["wsl"] = machine.is_wsl;
  put(json, "nvidia_module", machine.nvidia_module);
  return json;
}

}  // namespace

Json json_of(const Environment& environment) {
  Json json;
  json["gputrain"] = environment.gputrain;
  json["libtorch"]["version"] = environment.libtorch;
  put(json["libtorch"], "build", environment.libtorch_build);
  put(json["libtorch"], "cpu_capability", environment.cpu_capability);
  json["cuda"] = json_of(environment.cuda);
  for (const int capability : environment.compiled_for)
    json["cuda"]["compiled_for"].push_back(capability_text(capability));
  put(json, "nvidia_driver", environment.nvidia_driver);
  put(json, "cudnn", environment.cudnn);
  put(json, "nccl", environment.nccl);
  json["machine"] = json_of(environment.machine);
  json["gpus"] = Json::array();
  for (const Gpu& gpu : environment.gpus) json["gpus"].push_back(json_of(gpu));
  json["variables"] = Json::object();
  for (const auto& [name, value] : environment.variables) json["variables"][name] = value;
  return json;
}

// Names and variables come from outside and may be no UTF-8.
std::string to_json(const Environment& environment) {
  return json_of(environment).dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gputrain::device
