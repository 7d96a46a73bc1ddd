#include "base/text.h"
#include "device/doctor_parts.h"
#include "device/environment_variables.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

namespace gputrain::device {
namespace {

using Level = Finding::Level;

struct AllocatorOption {
  const char* name;
  bool is_switch;
};

// Of LibTorch 2.9 to 2.11, for GPU and pinned memory.
constexpr std::array kAllocatorOptions = {
    AllocatorOption{"backend", false},
    AllocatorOption{"expandable_segments", true},
    AllocatorOption{"garbage_collection_threshold", false},
    AllocatorOption{"graph_capture_record_stream_reuse", true},
    AllocatorOption{"large_segment_size_mb", false},
    AllocatorOption{"max_non_split_rounding_mb", false},
    AllocatorOption{"max_split_size_mb", false},
    AllocatorOption{"per_process_memory_fraction", false},
    AllocatorOption{"pinned_num_register_threads", false},
    AllocatorOption{"pinned_reserve_segment_size_mb", false},
    AllocatorOption{"pinned_use_background_threads", true},
    AllocatorOption{"pinned_use_cuda_host_register", true},
    AllocatorOption{"release_lock_on_cudamalloc", true},
    AllocatorOption{"roundup_power2_divisions", false},
};

// Parts between separators, without blanks at their ends; those in brackets stay together.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char letter : text) {
    if (letter == '[') ++depth;
    if (letter == ']') --depth;
    if (letter == separator && depth == 0) {
      parts.emplace_back();
    } else if (letter != ' ') {
      parts.back() += letter;
    }
  }
  return parts;
}

std::string unknown_option(const std::string& option) {
  std::vector<std::string> names;
  for (const AllocatorOption& known : kAllocatorOptions) names.emplace_back(known.name);
  const std::string meant = nearest(option, names);
  return concat(option, " is no option of LibTorch's allocator",
                meant.empty() ? "" : concat("; did you mean ", meant, "?"));
}

// What is wrong with "option:value,option:value", in a few words.
std::optional<std::string> allocator_mistake(const std::string& text) {
  for (const std::string& entry : split(text, ',')) {
    const std::size_t colon = entry.find(':');
    if (entry.empty()) continue;
    if (colon == std::string::npos) return concat("expected option:value in place of ", entry);
    const std::string option = entry.substr(0, colon);
    const std::string value = entry.substr(colon + 1);
    const auto known = std::find_if(kAllocatorOptions.begin(), kAllocatorOptions.end(),
                                    [&](const AllocatorOption& one) { return option == one.name; });
    if (known == kAllocatorOptions.end()) return unknown_option(option);
    if (known->is_switch && value != "True" && value != "False")
      return concat(option, " is ", value, "; expected True or False");
  }
  return std::nullopt;
}

void check_allocator(const Environment& environment, Finding& finding) {
  const std::string& value = environment.variables.at(finding.what);
  if (const std::optional<std::string> mistake = allocator_mistake(value)) {
    finding.level = Level::kWarning;
    finding.found += concat("; ", *mistake);
    finding.cost = "LibTorch stops at the first tensor on the GPU";
  } else if (environment.variables.count("PYTORCH_ALLOC_CONF") != 0 &&
             environment.variables.count("PYTORCH_CUDA_ALLOC_CONF") != 0) {
    finding.cost += "; both PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF are set, and either may win";
  }
}

std::optional<std::size_t> number_in(const std::string& text) {
  if (text.empty() || text.size() > 3 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoul(text);
}

// By its number among all GPUs, or by the beginning of its UUID. Parts of a GPU (MIG) are not looked up.
bool exists(const std::string& entry, const std::vector<Gpu>& gpus) {
  if (const std::optional<std::size_t> number = number_in(entry)) return *number < gpus.size();
  if (entry.compare(0, 4, "MIG-") == 0) return true;
  return entry.compare(0, 4, "GPU-") == 0 && std::any_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
           return gpu.uuid.compare(0, entry.size(), entry) == 0;
         });
}

// What is wrong with the first entry that CUDA stops at; "" when there is none, as far as can be known.
std::string wrong_entry(const std::vector<std::string>& entries, const std::vector<Gpu>& gpus) {
  for (const std::string& entry : entries) {
    if (entry.empty() || entry == "-1") return "an entry that names none ends the list";
    if (!gpus.empty() && !exists(entry, gpus)) return concat("there is no GPU ", entry);
    if (std::count(entries.begin(), entries.end(), entry) > 1) return concat(entry, " is named twice");
  }
  return "";
}

// CUDA uses what stands before the first entry that it cannot find, and nothing when one is there twice.
void check_visible_devices(const Environment& environment, Finding& finding) {
  const std::vector<std::string> entries = split(environment.variables.at(finding.what), ',');
  const std::size_t listed = environment.cuda.capabilities.size();
  if (listed >= entries.size()) return;
  const bool hides_all = entries[0].empty() || entries[0] == "-1";
  const std::string wrong = hides_all ? "it hides every GPU" : wrong_entry(entries, environment.gpus);
  if (wrong.empty()) return;
  if (environment.machine.has_nvidia_gpu || !environment.gpus.empty()) finding.level = Level::kWarning;
  finding.found += concat("; ", wrong);
  finding.cost = listed == 0
                     ? "no GPU is seen"
                     : concat("only ", listed, " of those named ", listed == 1 ? "is" : "are", " seen");
  finding.advice += ", or name GPUs that nvidia-smi -L lists";
}

// Absent: as many threads as cores, which is what a run would take anyway.
std::optional<Finding> check_threads(const Environment& environment, Finding finding) {
  const int cores = environment.machine.cores;
  const int threads = std::atoi(environment.variables.at(finding.what).c_str());
  if (threads == cores) return std::nullopt;
  if (threads <= 0) {
    finding.found += "; a number of threads was expected";
    finding.cost = "";
    return finding;
  }
  finding.found += concat("; ", cores, cores == 1 ? " core" : " cores", " can be used");
  finding.cost =
      threads < cores ? "work on the CPU leaves cores idle" : "threads that share a core slow one another";
  finding.level = threads < cores ? Level::kNote : Level::kWarning;
  finding.advice += ", or set cpu.threads in the recipe";
  return finding;
}

std::optional<Finding> look_at(const WatchedVariable& variable, const std::string& value,
                               const Environment& environment) {
  const std::string name = variable.name;
  Finding finding = make_finding(Topic::kVariable, name, variable.hurts ? Level::kWarning : Level::kNote,
                                 value.empty() ? "\"\"" : value, variable.effect, concat("unset ", name));
  if (name == "OMP_NUM_THREADS" || name == "MKL_NUM_THREADS") return check_threads(environment, finding);
  if (name == "CUDA_VISIBLE_DEVICES") check_visible_devices(environment, finding);
  if (name == "PYTORCH_ALLOC_CONF" || name == "PYTORCH_CUDA_ALLOC_CONF")
    check_allocator(environment, finding);
  return finding;
}

}  // namespace

void look_at_variables(const Environment& environment, Findings& findings) {
  for (const WatchedVariable& variable : watched_variables()) {
    const auto set = environment.variables.find(variable.name);
    if (set == environment.variables.end() || !variable.matters(set->second)) continue;
    if (const std::optional<Finding> finding = look_at(variable, set->second, environment))
      findings.push_back(*finding);
  }
}

}  // namespace gputrain::device
