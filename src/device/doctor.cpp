#include "device/doctor.h"

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "device/cuda_facts.h"
#include "device/doctor_parts.h"
#include "device/probe.h"

#include <filesystem>
#include <memory>
#include <system_error>

namespace gputrain::device {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;

constexpr std::int64_t kGiB = 1LL << 30;
constexpr std::int64_t kLittleDisk = 5 * kGiB;    // a few checkpoints of a mid-sized model
constexpr std::int64_t kNoDisk = kGiB / 4;        // not even the final weights of one
constexpr std::int64_t kLittleMemory = 2 * kGiB;  // LibTorch's libraries alone take half of that
constexpr std::int64_t kLittleShared = kGiB;      // NCCL takes some ten MiB for each pair of GPUs

bool has_nvidia_gpu(const Environment& environment) {
  return environment.machine.has_nvidia_gpu || !environment.gpus.empty();
}

bool has_several_gpus(const Environment& environment) {
  return environment.cuda.capabilities.size() > 1;
}

std::string free_text(const Capacity& space) {
  return concat(format_bytes(space.free), " of ", format_bytes(space.total), " free");
}

void look_at_cpu(const Machine& machine, Findings& findings) {
  const std::string model = machine.cpu.empty() ? "" : concat(machine.cpu, ", ");
  Finding cpu = make_finding(Topic::kCpu, "", Level::kOk,
                             concat(model, machine.cores, machine.cores == 1 ? " core" : " cores"));
  if (machine.cores == 1) {
    cpu.level = Level::kNote;
    cpu.cost = "reading data and training take turns on it";
  }
  findings.push_back(cpu);
}

// Two drivers mean by powersave what others call schedutil; elsewhere it is the lowest frequency, always.
void look_at_governor(const Machine& machine, Findings& findings) {
  if (machine.governor != "powersave") return;
  const std::string& driver = machine.frequency_driver;
  const bool adapts = driver == "intel_pstate" || driver == "amd-pstate-epp";
  findings.push_back(
      make_finding(Topic::kGovernor, "", adapts ? Level::kNote : Level::kWarning,
                   adapts ? concat("powersave; ", driver, " raises the clocks with the load") : "powersave",
                   adapts ? "short bursts of work, such as starting small kernels, find slow clocks"
                          : "the CPU stays at its lowest clocks, and the GPU waits for it",
                   "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"));
}

void look_at_memory(const Machine& machine, Findings& findings) {
  Finding memory = make_finding(Topic::kMemory, "", Level::kOk,
                                free_text({machine.memory.available, machine.memory.total}));
  if (machine.memory.available < kLittleMemory) {
    memory.level = Level::kWarning;
    memory.cost = "a run may be ended by the system for want of memory";
    memory.advice = concat("close other programs, or use smaller batches and fewer data workers",
                           machine.is_wsl ? "; WSL gets what memory= in .wslconfig says, else half" : "");
  }
  findings.push_back(memory);
}

void look_at_shared_memory(const Environment& environment, Findings& findings) {
  const std::optional<Capacity>& space = environment.machine.shared_memory;
  if (!space) return;
  Finding finding =
      make_finding(Topic::kSharedMemory, "", Level::kOk, concat(free_text(*space), " in /dev/shm"));
  if (has_several_gpus(environment) && space->free < kLittleShared) {
    finding.level = Level::kWarning;
    finding.cost = "NCCL may fail where GPUs exchange data through it";
    finding.advice =
        "start the container with --shm-size=1g or --ipc=host; outside of one: sudo mount -o "
        "remount,size=1G /dev/shm";
  }
  findings.push_back(finding);
}

void look_at_driver(const Environment& environment, Findings& findings) {
  const std::string driver = environment.nvidia_driver.empty() ? "" : concat(environment.nvidia_driver, ", ");
  const std::string compiled = environment.compiled_for.empty()
                                   ? ""
                                   : concat(", compiled for ", capabilities_text(environment.compiled_for));
  findings.push_back(
      make_finding(Topic::kDriver, "", Level::kOk,
                   concat(driver, "runs CUDA up to ", cuda_version_text(environment.cuda.driver),
                          "; this program uses ", cuda_version_text(environment.cuda.runtime), compiled)));
}

// What to do about a GPU that cannot be used, where the machine tells more than CUDA does; else `otherwise`.
std::string advice_on_missing_gpu(const Environment& environment, const std::string& otherwise) {
  const CudaState& cuda = environment.cuda;
  const std::string& module = environment.machine.nvidia_module;
  const bool is_old = cuda.driver / 1000 < cuda.runtime / 1000;
  if (!cuda.built) return otherwise;
  if (environment.machine.is_wsl)
    return is_old ? concat("install driver ", oldest_driver_for(cuda.runtime),
                           " or newer in Windows, and none in WSL")
                  : otherwise;
  if (cuda.driver == 0 && !module.empty())
    return concat("driver ", module,
                  " is loaded and its libraries are missing: start the container with its GPUs (docker run "
                  "--gpus all), or install them");
  const bool answers = !environment.nvidia_driver.empty() || !cuda.capabilities.empty();
  if (is_old || answers || cuda.visible_devices) return otherwise;
  if (module.empty())
    return "load the driver: sudo modprobe nvidia, or restart the machine; Secure Boot may refuse it (sudo "
           "dmesg tells)";
  return concat("restart the machine: driver ", module,
                " is loaded, and its libraries seem to have been updated since");
}

void look_at_missing_gpu(const Environment& environment, const std::string& why, Findings& findings) {
  const std::string cost = "training runs on the CPU, tens of times slower than on a GPU";
  if (!has_nvidia_gpu(environment)) {
    const bool has_driver = !environment.nvidia_driver.empty();
    findings.push_back(make_finding(
        Topic::kNoGpu, "", Level::kNote,
        concat("no NVIDIA GPU on this machine",
               has_driver ? concat(", though driver ", environment.nvidia_driver, " is there") : ""),
        cost, has_driver ? "see that the card is in its slot, has power, and is listed by lspci" : ""));
    return;
  }
  const std::size_t cut = why.find("; ");
  findings.push_back(
      make_finding(Topic::kNoGpu, "", Level::kProblem, why.substr(0, cut), cost,
                   advice_on_missing_gpu(environment, cut == std::string::npos ? "" : why.substr(cut + 2))));
}

void look_at_libraries(const Environment& environment, Findings& findings) {
  if (!environment.cuda.built) return;
  if (environment.cudnn.empty())
    findings.push_back(make_finding(Topic::kCudnn, "", Level::kWarning, "not found",
                                    "convolutions on the GPU are slow or fail",
                                    "build with scripts/quickstart, which brings cuDNN along"));
  if (environment.nccl.empty() && has_several_gpus(environment))
    findings.push_back(make_finding(Topic::kNccl, "", Level::kNote, "not found",
                                    "a run cannot use several GPUs",
                                    "build with scripts/quickstart, which brings NCCL along"));
}

bool is_full(const FolderSpace& folder) {
  return folder.space.free < kNoDisk;
}

void look_at_folder(const std::optional<FolderSpace>& folder, Findings& findings) {
  if (!folder) return;
  Finding finding = make_finding(Topic::kFolder, folder->path, Level::kOk, free_text(folder->space));
  if (folder->space.free < kLittleDisk) {
    finding.level = is_full(*folder) ? Level::kProblem : Level::kWarning;
    finding.cost = finding.level == Level::kProblem ? "weights cannot be saved" : "checkpoints may not fit";
    finding.advice = "make room, or set output_dir to a folder on a larger disk";
  }
  findings.push_back(finding);
}

// The GPU that `auto` chooses; nullptr: the CPU, or one of which nothing is known.
const Gpu* chosen_gpu(const Environment& environment, at::Device device) {
  for (const Gpu& gpu : environment.gpus)
    if (device.is_cuda() && gpu.index == device.index()) return &gpu;
  return nullptr;
}

void judge(const Environment& environment, const Trial& trial, at::Device device, Diagnosis& diagnosis) {
  const Gpu* gpu = chosen_gpu(environment, device);
  diagnosis.device = device.str();
  if (trial.probe_failure) {
    diagnosis.verdict = concat("no: ", *trial.probe_failure);
  } else if (trial.folder && is_full(*trial.folder)) {
    diagnosis.verdict = concat("no: the disk of ", trial.folder->path, " is full");
  } else if (gpu != nullptr && !may_have_code_for(environment, *gpu)) {
    diagnosis.verdict = concat("no: this program was not compiled for ", device.str());
  } else {
    diagnosis.will_train = true;
    diagnosis.verdict = device.is_cuda() ? concat("yes, on ", device.str()) : "yes, on the CPU";
    if (gpu != nullptr) diagnosis.verdict += concat(" (", gpu->name, ", ", size_text(*gpu), ")");
  }
}

// What NVML says of the GPU that has just computed.
std::optional<NvmlFacts> facts_at_work(at::Device device) {
  if (!device.is_cuda()) return std::nullopt;
  const std::unique_ptr<Nvml> nvml = open_nvml();
  const std::optional<CudaGpu> gpu = query_gpu(device.index());
  NvmlDevice handle = nvml && gpu ? nvml->find(gpu->uuid, gpu->pci_bus) : nullptr;
  if (handle == nullptr) return std::nullopt;
  return nvml->facts(handle);
}

}  // namespace

Trial try_out(at::Device device, const std::string& folder) {
  Trial trial;
  trial.probe_failure = probe(device);
  if (!trial.probe_failure) trial.at_work = facts_at_work(device);
  std::error_code failed;
  const fs::space_info space = fs::space(nearest_existing(folder), failed);
  if (!failed)
    trial.folder = FolderSpace{
        folder, {static_cast<std::int64_t>(space.available), static_cast<std::int64_t>(space.capacity)}};
  return trial;
}

Diagnosis diagnose(const Environment& environment, const Trial& trial) {
  const at::Device device = choose_device("auto", environment.cuda);
  Diagnosis diagnosis;
  Findings& findings = diagnosis.findings;
  look_at_cpu(environment.machine, findings);
  look_at_governor(environment.machine, findings);
  look_at_memory(environment.machine, findings);
  look_at_shared_memory(environment, findings);
  if (const std::optional<std::string> why = why_no_gpu(environment.cuda)) {
    look_at_missing_gpu(environment, *why, findings);
  } else {
    look_at_driver(environment, findings);
  }
  look_at_libraries(environment, findings);
  for (const Gpu& gpu : environment.gpus) {
    const bool worked = trial.at_work && device.is_cuda() && gpu.index == device.index();
    look_at_gpu(environment, gpu, worked ? &*trial.at_work : nullptr, findings);
  }
  look_at_variables(environment, findings);
  look_at_folder(trial.folder, findings);
  if (trial.probe_failure)
    findings.push_back(make_finding(Topic::kTrial, "", Level::kProblem, *trial.probe_failure,
                                    "nothing can be trained there", "update the driver, or set device: cpu"));
  judge(environment, trial, device, diagnosis);
  return diagnosis;
}

}  // namespace gputrain::device
