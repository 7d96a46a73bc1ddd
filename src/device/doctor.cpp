#include "device/doctor.h"

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "device/probe.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace gputrain::device {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;

constexpr std::int64_t kGiB = 1LL << 30;
constexpr std::int64_t kLittleDisk = 5 * kGiB;    // a few checkpoints of a mid-sized model
constexpr std::int64_t kNoDisk = kGiB / 4;        // not even the final weights of one
constexpr std::int64_t kLittleMemory = 2 * kGiB;  // LibTorch's libraries alone take half of that

using Findings = std::vector<Finding>;

// Of a GPU that this program sees.
std::string name_of(const Gpu& gpu) {
  return concat("cuda:", gpu.index.value());
}

std::string size_text(const Gpu& gpu) {
  return gpu.memory ? format_bytes(gpu.memory->total) : "memory unknown";
}

bool has_nvidia_gpu(const Environment& environment) {
  return environment.machine.has_nvidia_gpu || !environment.gpus.empty();
}

void look_at_cpu(const Environment& environment, Findings& findings) {
  const Machine& machine = environment.machine;
  const std::string model = machine.cpu.empty() ? "" : concat(machine.cpu, ", ");
  Finding cpu{Level::kOk, "CPU", concat(model, machine.cores, machine.cores == 1 ? " core" : " cores"), "",
              ""};
  if (machine.cores == 1) {
    cpu.level = Level::kNote;
    cpu.cost = "reading data and training take turns on it";
  }
  findings.push_back(cpu);

  Finding memory{
      Level::kOk, "memory",
      concat(format_bytes(machine.memory.available), " of ", format_bytes(machine.memory.total), " free"), "",
      ""};
  if (machine.memory.available < kLittleMemory) {
    memory.level = Level::kWarning;
    memory.cost = "a run may be ended by the system for want of memory";
    memory.advice = "close other programs, or use smaller batches and fewer data workers";
  }
  findings.push_back(memory);
}

// The one finding that says why no GPU is used, or the driver's version where one can be.
void look_at_cuda(const Environment& environment, Findings& findings) {
  const std::optional<std::string> why = why_no_gpu(environment.cuda);
  if (!why) {
    const std::string driver =
        environment.nvidia_driver.empty() ? "" : concat(environment.nvidia_driver, ", ");
    findings.push_back({Level::kOk, "NVIDIA driver",
                        concat(driver, "runs CUDA up to ", cuda_version_text(environment.cuda.driver),
                               "; this program uses ", cuda_version_text(environment.cuda.runtime)),
                        "", ""});
    return;
  }
  const std::string cost = "training runs on the CPU, tens of times slower than on a GPU";
  if (!has_nvidia_gpu(environment)) {
    findings.push_back({Level::kNote, "GPU", "no NVIDIA GPU on this machine", cost, ""});
    return;
  }
  const std::size_t cut = why->find("; ");
  findings.push_back({Level::kProblem, "GPU", why->substr(0, cut), cost,
                      cut == std::string::npos ? "" : why->substr(cut + 2)});
}

void look_at_libraries(const Environment& environment, Findings& findings) {
  if (!environment.cuda.built || !environment.cudnn.empty()) return;
  findings.push_back({Level::kWarning, "cuDNN", "not found", "convolutions on the GPU are slow or fail",
                      "build with scripts/quickstart, which brings cuDNN along"});
}

std::string holder_text(const GpuProcess& process) {
  const std::string name = process.name.empty() ? "" : concat(process.name, ", ");
  const std::string bytes = process.bytes ? concat(" with ", format_bytes(*process.bytes)) : "";
  return concat(name, "pid ", process.pid, bytes);
}

// Processes other than this one.
std::vector<std::string> holders(const Environment& environment, const Gpu& gpu) {
  std::vector<std::string> texts;
  if (!gpu.nvml) return texts;
  for (const GpuProcess& process : gpu.nvml->processes)
    if (process.pid != environment.pid) texts.push_back(holder_text(process));
  return texts;
}

void look_at_memory(const Environment& environment, const Gpu& gpu, Findings& findings) {
  if (!gpu.memory || gpu.memory->total <= 0) return;
  const std::vector<std::string> held = holders(environment, gpu);
  const double free = static_cast<double>(gpu.memory->free) / static_cast<double>(gpu.memory->total);
  if (free >= 0.85 && held.empty()) return;
  Finding finding{free < 0.5 ? Level::kWarning : Level::kNote, concat("free memory of ", name_of(gpu)),
                  concat(format_bytes(gpu.memory->free), " of ", format_bytes(gpu.memory->total)), "", ""};
  if (!held.empty()) {
    finding.found += concat("; held by ", join(held, ", ", " and "));
    finding.cost = "batches must fit into what is left, and others slow the GPU down";
    finding.advice = "end what is not needed, or choose another GPU with device: cuda:N";
  } else {
    finding.cost = "batches must fit into what is left";
    finding.advice = "see what nvidia-smi lists; a display or another container may hold it";
  }
  findings.push_back(finding);
}

void look_at_power(const Gpu& gpu, Findings& findings) {
  const auto limit = gpu.nvml->power_limit_watts;
  const auto normal = gpu.nvml->default_power_limit_watts;
  if (!limit || !normal || *limit >= *normal - 0.5) return;
  findings.push_back({Level::kWarning, concat("power limit of ", name_of(gpu)),
                      concat(shortest(*limit), " W; the default is ", shortest(*normal), " W"),
                      "the clocks fall under load, and throughput with them",
                      concat("sudo nvidia-smi -i ", gpu.uuid, " -pl ", shortest(*normal),
                             " (a laptop sets the limit itself: choose its performance profile)")});
}

void look_at_pcie(const Gpu& gpu, Findings& findings) {
  const NvmlFacts& facts = *gpu.nvml;
  if (facts.pcie_width && facts.pcie_width_max && *facts.pcie_width < *facts.pcie_width_max)
    findings.push_back(
        {Level::kWarning, concat("PCIe link of ", name_of(gpu)),
         concat("x", *facts.pcie_width, "; x", *facts.pcie_width_max, " is possible"),
         concat("copies to the GPU run at ", *facts.pcie_width, "/", *facts.pcie_width_max,
                " of the speed, which batches of large images feel"),
         "put the card into the widest slot, directly and without a riser; some laptops and systems "
         "widen the link under load only"});
  if (facts.pcie_generation && facts.pcie_generation_max &&
      *facts.pcie_generation < *facts.pcie_generation_max)
    findings.push_back({Level::kNote, concat("PCIe generation of ", name_of(gpu)),
                        concat(*facts.pcie_generation, "; ", *facts.pcie_generation_max, " is possible"), "",
                        "it falls while the GPU is idle: look again during a run"});
}

void look_at_clocks(const Gpu& gpu, Findings& findings) {
  if (gpu.nvml->throttling.empty()) return;
  const std::string temperature =
      gpu.nvml->temperature_celsius ? concat(" at ", *gpu.nvml->temperature_celsius, " °C") : "";
  // Under load, the power limit is what bounds most cards.
  const bool only_power = gpu.nvml->throttling == std::vector<std::string>{"power limit"};
  findings.push_back({only_power ? Level::kNote : Level::kWarning, concat("clocks of ", name_of(gpu)),
                      concat("held down by ", join(gpu.nvml->throttling, ", ", " and "), temperature),
                      "throughput is below what the GPU can do", "see nvidia-smi -q -d PERFORMANCE"});
}

void look_at_capability(const Gpu& gpu, Findings& findings) {
  if (gpu.capability >= 80 || gpu.capability == 0) return;
  findings.push_back({Level::kNote, concat("precision on ", name_of(gpu)),
                      concat("compute capability ", capability_text(gpu.capability)),
                      "TF32 and bf16 are not fast here; from 8.0 on they are", ""});
}

void look_at_gpu(const Environment& environment, const Gpu& gpu, Findings& findings) {
  if (!gpu.index) {  // what holds it up is no matter of this program
    findings.push_back(
        {Level::kNote, gpu.name, concat(size_text(gpu), ", not visible to this program"), "", ""});
    return;
  }
  findings.push_back({Level::kOk, name_of(gpu), concat(gpu.name, ", ", size_text(gpu)), "", ""});
  look_at_capability(gpu, findings);
  look_at_memory(environment, gpu, findings);
  if (!gpu.nvml) return;
  look_at_power(gpu, findings);
  look_at_pcie(gpu, findings);
  look_at_clocks(gpu, findings);
}

// What a variable does when it is set; `value` given: only then.
struct VariableAdvice {
  const char* name;
  const char* value;
  Level level;
  const char* cost;
  const char* advice;
};

constexpr std::array kVariableAdvice = {
    VariableAdvice{"CUDA_LAUNCH_BLOCKING", "1", Level::kWarning, "the host waits for every kernel",
                   "unset CUDA_LAUNCH_BLOCKING"},
    VariableAdvice{"PYTORCH_NO_CUDA_MEMORY_CACHING", nullptr, Level::kWarning,
                   "every tensor asks the driver for memory and waits",
                   "unset PYTORCH_NO_CUDA_MEMORY_CACHING"},
    VariableAdvice{"NVIDIA_TF32_OVERRIDE", nullptr, Level::kWarning, "it overrules the recipe's precision",
                   "unset NVIDIA_TF32_OVERRIDE"},
    VariableAdvice{"CUDA_MODULE_LOADING", "EAGER", Level::kNote,
                   "all kernels are loaded at the start, which takes seconds and memory",
                   "unset CUDA_MODULE_LOADING"},
    VariableAdvice{"CUDA_VISIBLE_DEVICES", nullptr, Level::kNote,
                   "only these GPUs are seen, counted from cuda:0", ""},
    VariableAdvice{"PYTORCH_CUDA_ALLOC_CONF", nullptr, Level::kNote, "it changes how GPU memory is cached",
                   ""},
    VariableAdvice{"PYTORCH_ALLOC_CONF", nullptr, Level::kNote, "it changes how GPU memory is cached", ""},
    VariableAdvice{"CUBLAS_WORKSPACE_CONFIG", nullptr, Level::kNote,
                   "it changes the workspace of matrix products", ""},
    VariableAdvice{"LD_PRELOAD", nullptr, Level::kNote, "libraries come before those of this program", ""},
    VariableAdvice{"LD_LIBRARY_PATH", nullptr, Level::kNote,
                   "CUDA or cuDNN of another version may be loaded from there", ""},
};

void look_at_variables(const Environment& environment, Findings& findings) {
  for (const VariableAdvice& advice : kVariableAdvice) {
    const auto set = environment.variables.find(advice.name);
    if (set == environment.variables.end()) continue;
    if (advice.value != nullptr && set->second != advice.value) continue;
    findings.push_back({advice.level, advice.name, set->second, advice.cost, advice.advice});
  }
}

void look_at_threads(const Environment& environment, Findings& findings) {
  const auto set = environment.variables.find("OMP_NUM_THREADS");
  if (set == environment.variables.end()) return;
  const int threads = std::atoi(set->second.c_str());
  if (threads >= environment.machine.cores || threads <= 0) return;
  findings.push_back({Level::kNote, "OMP_NUM_THREADS",
                      concat(threads, "; ", environment.machine.cores, " cores can be used"),
                      "work on the CPU leaves cores idle",
                      "unset OMP_NUM_THREADS, or set cpu.threads in the recipe"});
}

bool is_full(const FolderSpace& folder) {
  return folder.space.free < kNoDisk;
}

void look_at_folder(const std::optional<FolderSpace>& folder, Findings& findings) {
  if (!folder) return;
  Finding finding{
      Level::kOk, concat("disk space for ", folder->path),
      concat(format_bytes(folder->space.free), " of ", format_bytes(folder->space.total), " free"), "", ""};
  if (folder->space.free < kLittleDisk) {
    finding.level = is_full(*folder) ? Level::kProblem : Level::kWarning;
    finding.cost = finding.level == Level::kProblem ? "weights cannot be saved" : "checkpoints may not fit";
    finding.advice = "make room, or set output_dir to a folder on a larger disk";
  }
  findings.push_back(finding);
}

void judge(const Environment& environment, const Trial& trial, Diagnosis& diagnosis) {
  const at::Device device = choose_device("auto", environment.cuda);
  diagnosis.device = device.str();
  if (trial.probe_failure) {
    diagnosis.verdict = concat("no: ", *trial.probe_failure);
  } else if (trial.folder && is_full(*trial.folder)) {
    diagnosis.verdict = concat("no: the disk of ", trial.folder->path, " is full");
  } else {
    diagnosis.will_train = true;
    diagnosis.verdict = "yes, on the CPU";
    for (const Gpu& gpu : environment.gpus)
      if (device.is_cuda() && gpu.index == device.index())
        diagnosis.verdict = concat("yes, on ", device.str(), " (", gpu.name, ", ", size_text(gpu), ")");
  }
}

}  // namespace

Trial try_out(at::Device device, const std::string& folder) {
  Trial trial;
  trial.probe_failure = probe(device);
  std::error_code failed;
  const fs::space_info space = fs::space(nearest_existing(folder), failed);
  if (!failed)
    trial.folder = FolderSpace{
        folder, {static_cast<std::int64_t>(space.available), static_cast<std::int64_t>(space.capacity)}};
  return trial;
}

Diagnosis diagnose(const Environment& environment, const Trial& trial) {
  Diagnosis diagnosis;
  look_at_cpu(environment, diagnosis.findings);
  look_at_cuda(environment, diagnosis.findings);
  look_at_libraries(environment, diagnosis.findings);
  for (const Gpu& gpu : environment.gpus) look_at_gpu(environment, gpu, diagnosis.findings);
  look_at_variables(environment, diagnosis.findings);
  look_at_threads(environment, diagnosis.findings);
  look_at_folder(trial.folder, diagnosis.findings);
  if (trial.probe_failure)
    diagnosis.findings.push_back({Level::kProblem, "trial computation", *trial.probe_failure,
                                  "nothing can be trained there", "update the driver, or set device: cpu"});
  judge(environment, trial, diagnosis);
  return diagnosis;
}

}  // namespace gputrain::device
