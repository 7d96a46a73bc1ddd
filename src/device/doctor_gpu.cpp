#include "base/text.h"
#include "base/units.h"
#include "device/doctor_parts.h"

#include <algorithm>

namespace gputrain::device {
namespace {

using Level = Finding::Level;

// Of a GPU that this program sees.
std::string name_of(const Gpu& gpu) {
  return concat("cuda:", gpu.index.value());
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

bool is_mobile(const Gpu& gpu) {
  return has(gpu.name, "Laptop") || has(gpu.name, "Max-Q") || has(gpu.name, "Mobile");
}

// Code for a capability runs on later ones of the same major version.
bool runs_as_it_is(int compiled_for, int capability) {
  return compiled_for / 10 == capability / 10 && compiled_for <= capability;
}

void look_at_code(const Environment& environment, const Gpu& gpu, Findings& findings) {
  if (gpu.capability == 0) return;
  const std::string found = concat("compute capability ", capability_text(gpu.capability), "; ");
  if (!runs_on_capability(environment.cuda.runtime, gpu.capability)) {
    findings.push_back(make_finding(
        Topic::kCode, name_of(gpu), Level::kNote,
        concat(found, "CUDA ", cuda_version_text(environment.cuda.runtime), " has no code for it any more"),
        "it cannot be used",
        "choose another GPU with device: cuda:N, or build with an older LibTorch (Torch_DIR=...)"));
    return;
  }
  const std::vector<int>& compiled = environment.compiled_for;
  if (compiled.empty() || std::any_of(compiled.begin(), compiled.end(),
                                      [&](int one) { return runs_as_it_is(one, gpu.capability); }))
    return;
  const bool perhaps = may_have_code_for(environment, gpu);
  findings.push_back(
      make_finding(Topic::kCode, name_of(gpu), perhaps ? Level::kWarning : Level::kProblem,
                   concat(found, "this program was compiled for ", capabilities_text(compiled)),
                   perhaps ? "the driver translates its kernels when it starts; they fail if it holds no PTX"
                           : "its kernels do not run there",
                   "build again on this machine: scripts/quickstart"));
}

void look_at_precision(const Gpu& gpu, Findings& findings) {
  if (gpu.capability >= 80 || gpu.capability == 0) return;
  findings.push_back(make_finding(Topic::kPrecision, name_of(gpu), Level::kNote,
                                  concat("compute capability ", capability_text(gpu.capability)),
                                  "TF32 and bf16 are not fast here; from 8.0 on they are"));
}

std::string holder_text(const GpuProcess& process) {
  const std::string name = process.name.empty() ? "" : concat(process.name, ", ");
  const std::string bytes = process.bytes ? concat(" with ", format_bytes(*process.bytes)) : "";
  return concat(name, "pid ", process.pid, bytes);
}

// Processes other than this one.
std::vector<GpuProcess> holders(const Environment& environment, const Gpu& gpu) {
  std::vector<GpuProcess> others;
  if (!gpu.nvml) return others;
  for (const GpuProcess& process : gpu.nvml->processes)
    if (process.pid != environment.pid) others.push_back(process);
  return others;
}

// Programs that only draw hold little on an idle desktop; they are named once memory is short, or others
// compute there, too.
void look_at_memory(const Environment& environment, const Gpu& gpu, Findings& findings) {
  if (!gpu.memory || gpu.memory->total <= 0) return;
  const std::vector<GpuProcess> others = holders(environment, gpu);
  const auto computing =
      std::find_if(others.begin(), others.end(), [](const auto& it) { return it.computes; });
  const bool shared = computing != others.end();
  const double free = static_cast<double>(gpu.memory->free) / static_cast<double>(gpu.memory->total);
  if (free >= 0.85 && !shared) return;
  Finding finding =
      make_finding(Topic::kFreeMemory, name_of(gpu), free < 0.5 ? Level::kWarning : Level::kNote,
                   concat(format_bytes(gpu.memory->free), " of ", format_bytes(gpu.memory->total)),
                   "batches must fit into what is left",
                   "see what nvidia-smi lists; a display or another container may hold it");
  std::vector<std::string> texts;
  for (const GpuProcess& process : others) texts.push_back(holder_text(process));
  if (!texts.empty()) {
    finding.found += concat("; held by ", join(texts, ", ", " and "));
    finding.advice = "close windows that are not needed";
  }
  if (shared) {
    finding.cost += ", and others slow the GPU down";
    finding.advice = concat("end what is not needed (as with kill ", computing->pid,
                            "), or choose another GPU with device: cuda:N");
  }
  findings.push_back(finding);
}

// A desktop that is drawn on the GPU. A screen that is merely plugged in costs nothing.
void look_at_display(const Environment& environment, const Gpu& gpu, Findings& findings) {
  if (!gpu.nvml->display_active.value_or(false)) return;
  std::int64_t drawn = 0;
  for (const GpuProcess& process : gpu.nvml->processes)
    if (!process.computes) drawn += process.bytes.value_or(0);
  const std::string memory = drawn > 0 ? format_bytes(drawn) : "some hundred MiB";
  const std::optional<bool> attached = gpu.nvml->display_attached;
  findings.push_back(make_finding(
      Topic::kDisplay, name_of(gpu), Level::kNote,
      !attached   ? "active"
      : *attached ? "active, on a screen"
                  : "active, without a screen",
      concat("it holds ", memory, " of GPU memory, and its drawing interrupts training"),
      concat("plug the screen into the mainboard, if that has graphics",
             environment.machine.is_wsl ? ""
                                        : "; or end the desktop: sudo systemctl isolate multi-user.target")));
}

// NVML tells the driver model only to programs of Windows; WSL has no other than WDDM.
void look_at_driver_model(const Environment& environment, const Gpu& gpu, Findings& findings) {
  const std::string reported = gpu.nvml ? gpu.nvml->driver_model : "";
  const std::string model = reported.empty() && environment.machine.is_wsl ? "WDDM" : reported;
  if (model.empty()) return;
  Finding finding = make_finding(Topic::kDriverModel, name_of(gpu), Level::kOk,
                                 concat(model, environment.machine.is_wsl ? ", through WSL" : ""));
  if (model == "WDDM") {
    finding.level = Level::kNote;
    finding.cost =
        "Windows holds kernels back to start several at once, which small ones feel; what does not fit into "
        "GPU memory may slow down instead of failing";
    finding.advice =
        "take larger micro-batches; in the NVIDIA Control Panel set CUDA - Sysmem Fallback Policy to Prefer "
        "No Sysmem Fallback";
  }
  findings.push_back(finding);
}

// A desktop keeps the driver loaded, too, and in WSL Windows does.
void look_at_persistence(const Environment& environment, const Gpu& gpu, Findings& findings) {
  if (gpu.nvml->persistence_mode.value_or(true)) return;
  if (gpu.nvml->display_active.value_or(false) || environment.machine.is_wsl) return;
  findings.push_back(
      make_finding(Topic::kPersistence, name_of(gpu), Level::kNote, "off",
                   "each start sets the GPU up anew, which takes seconds, and a power limit set "
                   "by hand is forgotten between runs",
                   concat("sudo nvidia-smi -i ", gpu.uuid, " -pm 1")));
}

void look_at_power(const Gpu& gpu, Findings& findings) {
  const auto limit = gpu.nvml->power_limit_watts;
  const auto normal = gpu.nvml->default_power_limit_watts;
  if (!limit || !normal || *limit >= *normal - 0.5) return;
  const std::string mobile =
      "plug the charger in, choose the laptop's performance profile, and let the driver shift power to the "
      "GPU: sudo systemctl enable --now nvidia-powerd";
  findings.push_back(make_finding(
      Topic::kPowerLimit, name_of(gpu), Level::kWarning,
      concat(shortest(*limit), " W; the default is ", shortest(*normal), " W"),
      "the clocks fall under load, and throughput with them",
      is_mobile(gpu) ? mobile : concat("sudo nvidia-smi -i ", gpu.uuid, " -pl ", shortest(*normal))));
}

// GeForce cards compute in performance state 2, those for data centres in 0.
bool is_busy(const NvmlFacts& facts) {
  if (facts.performance_state) return *facts.performance_state <= 2;
  return facts.utilization_percent.value_or(0) >= 10;
}

std::string slow_copies(const std::string& share) {
  return concat("copies to the GPU run at ", share, " of the speed, which batches of large images feel");
}

void look_at_pcie(const Gpu& gpu, const NvmlFacts& facts, Findings& findings) {
  const int width = facts.pcie_width.value_or(0);
  const int width_max = facts.pcie_width_max.value_or(0);
  if (width > 0 && width < width_max)
    findings.push_back(make_finding(
        Topic::kPcieLink, name_of(gpu), Level::kWarning, concat("x", width, "; x", width_max, " is possible"),
        slow_copies(concat(width, "/", width_max)),
        concat("put the card into the widest slot, directly and without a riser",
               is_busy(facts) ? "" : "; some laptops and systems widen the link under load only")));
  const int generation = facts.pcie_generation.value_or(0);
  const int generation_max = facts.pcie_generation_max.value_or(0);
  if (generation <= 0 || generation >= generation_max) return;
  Finding finding = make_finding(Topic::kPcieGeneration, name_of(gpu), Level::kNote,
                                 concat(generation, "; ", generation_max, " is possible"), "",
                                 "it falls while the GPU is idle: look again during a run");
  if (is_busy(facts)) {  // each generation doubles the one before
    finding.level = Level::kWarning;
    finding.cost = slow_copies(concat("1/", 1 << (generation_max - generation)));
    finding.advice =
        "set the slot's speed to Auto in the BIOS, and try the card without a riser or in another slot";
  }
  findings.push_back(finding);
}

std::string clocks_advice(const std::string& reasons) {
  if (has(reasons, "temperature"))
    return "let more air through: fans, dust, the case; see nvidia-smi -q -d TEMPERATURE,PERFORMANCE";
  if (has(reasons, "brake"))
    return "see that every power plug of the card is in and the power supply suffices";
  if (has(reasons, "power limit")) return "nothing, unless the power limit is below its default";
  return "see nvidia-smi -q -d PERFORMANCE";
}

void look_at_clocks(const Gpu& gpu, const NvmlFacts& facts, Findings& findings) {
  if (facts.throttling.empty()) return;
  const std::string reasons = join(facts.throttling, ", ", " and ");
  const std::string temperature =
      facts.temperature_celsius ? concat(" at ", *facts.temperature_celsius, " °C") : "";
  const std::string clocks = facts.clock_mhz && facts.clock_max_mhz
                                 ? concat(", ", *facts.clock_mhz, " of ", *facts.clock_max_mhz, " MHz")
                                 : "";
  // Under load, the power limit is what bounds most cards.
  const bool only_power = facts.throttling == std::vector<std::string>{"power limit"};
  findings.push_back(make_finding(Topic::kClocks, name_of(gpu), only_power ? Level::kNote : Level::kWarning,
                                  concat("held down by ", reasons, temperature, clocks),
                                  "throughput is below what the GPU can do", clocks_advice(reasons)));
}

}  // namespace

std::string size_text(const Gpu& gpu) {
  return gpu.memory ? format_bytes(gpu.memory->total) : "memory unknown";
}

std::string capabilities_text(const std::vector<int>& capabilities) {
  std::vector<std::string> texts;
  for (const int capability : capabilities) texts.push_back(capability_text(capability));
  return join(texts, ", ", " and ");
}

bool may_have_code_for(const Environment& environment, const Gpu& gpu) {
  const std::vector<int>& compiled = environment.compiled_for;
  return compiled.empty() || gpu.capability == 0 ||
         std::any_of(compiled.begin(), compiled.end(), [&](int one) { return one <= gpu.capability; });
}

void look_at_gpu(const Environment& environment, const Gpu& gpu, const NvmlFacts* at_work,
                 Findings& findings) {
  if (!gpu.index) {  // what holds it up is no matter of this program
    findings.push_back(make_finding(Topic::kHiddenGpu, gpu.name, Level::kNote,
                                    concat(size_text(gpu), ", not visible to this program")));
    return;
  }
  const std::string capability =
      gpu.capability > 0 ? concat(", compute capability ", capability_text(gpu.capability)) : "";
  findings.push_back(make_finding(Topic::kGpu, name_of(gpu), Level::kOk,
                                  concat(gpu.name, ", ", size_text(gpu), capability)));
  look_at_code(environment, gpu, findings);
  look_at_precision(gpu, findings);
  look_at_memory(environment, gpu, findings);
  look_at_driver_model(environment, gpu, findings);
  if (!gpu.nvml) return;
  look_at_display(environment, gpu, findings);
  look_at_persistence(environment, gpu, findings);
  look_at_power(gpu, findings);
  const NvmlFacts& facts = at_work != nullptr ? *at_work : *gpu.nvml;
  look_at_pcie(gpu, facts, findings);
  look_at_clocks(gpu, facts, findings);
}

}  // namespace gputrain::device
