#include "device/environment.h"

#include "base/text.h"
#include "device/cuda_facts.h"
#include "device/cuda_facts_compiled.h"
#include "device/environment_variables.h"
#include "device/small_file.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <unistd.h>
#include <utility>

namespace gputrain::device {
namespace {

// A function of a library that LibTorch brought along; null where it did not (CUDA off).
template <class Function>
Function* loaded_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

std::string cudnn_version() {
  auto* get = loaded_function<std::size_t()>("cudnnGetVersion");
  if (get == nullptr) return "";
  const std::size_t version = get();  // 91900 is 9.19.0; before 9: 8902 is 8.9.2
  const std::size_t major = version >= 90000 ? 10000 : 1000;
  return concat(version / major, ".", version % major / 100, ".", version % 100);
}

std::string nccl_version() {
  auto* get = loaded_function<int(int*)>("ncclGetVersion");
  int version = 0;  // 22809 is 2.28.9
  if (get == nullptr || get(&version) != 0) return "";
  return concat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

std::map<std::string, std::string> set_variables() {
  std::map<std::string, std::string> set;
  for (const WatchedVariable& variable : watched_variables())
    if (const char* value = std::getenv(variable.name)) set[variable.name] = value;
  return set;
}

NvmlFacts facts_with_names(Nvml& nvml, NvmlDevice gpu) {
  NvmlFacts facts = nvml.facts(gpu);
  for (GpuProcess& process : facts.processes)
    process.name = read_small_file(concat("/proc/", process.pid, "/comm")).value_or("");
  return facts;
}

// What CUDA lists, in its order, with what NVML adds.
std::vector<Gpu> cuda_gpus(const CudaState& cuda, Nvml* nvml) {
  std::vector<Gpu> gpus;
  for (int i = 0; i < static_cast<int>(cuda.capabilities.size()); ++i) {
    const std::optional<CudaGpu> facts = query_gpu(i);
    if (!facts) continue;
    Gpu gpu;
    gpu.index = i;
    gpu.name = facts->name;
    gpu.uuid = facts->uuid;
    gpu.capability = facts->capability;
    gpu.multiprocessors = facts->multiprocessors;
    NvmlDevice handle = nvml == nullptr ? nullptr : nvml->find(facts->uuid, facts->pci_bus);
    if (handle != nullptr) gpu.nvml = facts_with_names(*nvml, handle);
    gpu.memory = gpu.nvml && gpu.nvml->memory ? gpu.nvml->memory : query_gpu_memory(i);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

// GPUs that the driver knows and CUDA does not list here.
void add_hidden_gpus(Nvml& nvml, std::vector<Gpu>& gpus) {
  for (NvmlDevice handle : nvml.all()) {
    Gpu gpu;
    gpu.nvml = facts_with_names(nvml, handle);
    gpu.name = gpu.nvml->name;
    gpu.uuid = gpu.nvml->uuid;
    gpu.memory = gpu.nvml->memory;
    const bool listed =
        std::any_of(gpus.begin(), gpus.end(), [&](const Gpu& other) { return other.uuid == gpu.uuid; });
    if (!listed) gpus.push_back(std::move(gpu));
  }
}

}  // namespace

Environment inspect(const std::string& gputrain_version) {
  const std::unique_ptr<Nvml> nvml = open_nvml();
  return inspect(gputrain_version, nvml.get());
}

Environment inspect(const std::string& gputrain_version, Nvml* nvml) {
  Environment environment;
  environment.gputrain = gputrain_version;
  environment.libtorch = TORCH_VERSION;
  environment.libtorch_build = at::show_config();
  environment.cpu_capability = at::get_cpu_capability();
  environment.cuda = cuda_state();
  environment.compiled_for = compiled_capabilities();
  environment.cudnn = cudnn_version();
  environment.nccl = nccl_version();
  environment.pid = static_cast<unsigned>(::getpid());
  environment.machine = inspect_machine();
  environment.variables = set_variables();
  environment.gpus = cuda_gpus(environment.cuda, nvml);
  if (nvml != nullptr) {
    environment.nvidia_driver = nvml->driver_version();
    add_hidden_gpus(*nvml, environment.gpus);
  }
  return environment;
}

}  // namespace gputrain::device
