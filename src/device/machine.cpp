#include "device/machine.h"

#include "device/small_file.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sched.h>
#include <sstream>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace gputrain::device {
namespace {

namespace fs = std::filesystem;

// What stands behind the first line that begins with `key`, without separators around it.
std::string value_of(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t from = line.find_first_not_of(" \t:=\"", key.size());
    if (from == std::string::npos) return "";
    return line.substr(from, line.find_last_not_of(" \t\"") + 1 - from);
  }
  return "";
}

// "max" and anything else that is no number: no limit.
std::optional<std::int64_t> number_in(const fs::path& path) {
  const std::optional<std::string> text = read_small_file(path.string());
  if (!text || text->empty()) return std::nullopt;
  char* end = nullptr;
  const std::int64_t value = std::strtoll(text->c_str(), &end, 10);
  if (end == text->c_str() || *end != '\0') return std::nullopt;
  return value;
}

// The names under which the two versions of control groups keep the same things.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* statistics_prefix;  // in memory.stat, of counts that include the groups below
};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", ""};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"};

// Copies of files that the kernel drops when memory is asked for; it counts them as used.
std::int64_t file_cache(const fs::path& group, const std::string& prefix) {
  const std::string text = read_small_file((group / "memory.stat").string()).value_or("");
  const auto bytes = [&](const char* key) {
    return std::strtoll(value_of(text, prefix + key).c_str(), nullptr, 10);
  };
  return bytes("inactive_file ") + bytes("active_file ");
}

// Narrows `memory` to a group's limit and to what is left below it.
void apply_limit(const fs::path& group, const GroupFiles& files, MachineMemory& memory) {
  const std::optional<std::int64_t> limit = number_in(group / files.limit);
  if (!limit || *limit >= memory.total) return;
  memory.total = *limit;
  const std::int64_t counted = number_in(group / files.used).value_or(0);
  const std::int64_t used = std::max<std::int64_t>(counted - file_cache(group, files.statistics_prefix), 0);
  memory.available = std::min(memory.available, std::max<std::int64_t>(*limit - used, 0));
}

// This group and those above it, up to the root of the mounted tree. Inside a container the path may name
// groups that are not mounted here; the root then stands for the container's own.
std::vector<fs::path> groups_upward(const fs::path& root, const std::string& path) {
  std::vector<fs::path> groups;
  for (fs::path group = fs::path(path).relative_path(); !group.empty(); group = group.parent_path())
    groups.push_back(root / group);
  groups.push_back(root);
  return groups;
}

// The path in a line of /proc/self/cgroup: "0::/path" (version 2), "5:memory:/path" (version 1).
std::string group_path(const std::string& controller, const std::string& root = "") {
  const std::string text = read_small_file(root + "/proc/self/cgroup").value_or("");
  const std::string mark = ":" + controller + ":";
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t from = at + mark.size();
  return text.substr(from, text.find('\n', from) - from);
}

int cores_by_quota(const fs::path& group, int cores) {
  std::istringstream text(read_small_file((group / "cpu.max").string()).value_or(""));
  double quota = 0;
  double period = 0;
  if (!(text >> quota >> period) || period <= 0) return cores;
  return std::min(cores, std::max(1, static_cast<int>(std::ceil(quota / period))));
}

// Vendor 10de with a display class (03xxxx).
bool nvidia_gpu_on_pci(const std::string& root) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root + "/sys/bus/pci/devices", ignored)) {
    if (read_small_file((entry.path() / "vendor").string()).value_or("") != "0x10de") continue;
    if (read_small_file((entry.path() / "class").string()).value_or("").compare(0, 4, "0x03") == 0)
      return true;
  }
  return false;
}

// The governor of one core, or that of the first core found to save power: a single one slows training.
void read_frequency(const std::string& root, Machine& machine) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root + "/sys/devices/system/cpu", ignored)) {
    const fs::path folder = entry.path() / "cpufreq";
    const std::optional<std::string> governor = read_small_file((folder / "scaling_governor").string());
    if (!governor || governor->empty()) continue;
    machine.governor = *governor;
    machine.frequency_driver = read_small_file((folder / "scaling_driver").string()).value_or("");
    if (machine.governor == "powersave") return;
  }
}

std::optional<Capacity> space_of(const std::string& folder) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return std::nullopt;
  const auto block = static_cast<std::int64_t>(space.f_frsize);
  return Capacity{static_cast<std::int64_t>(space.f_bavail) * block,
                  static_cast<std::int64_t>(space.f_blocks) * block};
}

// A kernel of one's own need not name Microsoft, but it has the GPU's paravirtual device.
bool is_wsl(const std::string& root) {
  std::string version = read_small_file(root + "/proc/version").value_or("");
  std::transform(version.begin(), version.end(), version.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  std::error_code ignored;
  return version.find("microsoft") != std::string::npos || fs::exists(root + "/dev/dxg", ignored);
}

// "580.65.06" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..." and of the open module's
// "NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  ...": the first word that begins with a digit.
std::string nvidia_module(const std::string& root) {
  const std::string text = read_small_file(root + "/proc/driver/nvidia/version").value_or("");
  std::istringstream words(value_of(text, "NVRM version"));
  for (std::string word; words >> word;)
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return word;
  return "";
}

}  // namespace

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) cores = CPU_COUNT(&allowed);
  for (const fs::path& group : groups_upward("/sys/fs/cgroup", group_path("")))
    cores = cores_by_quota(group, cores);
  return cores;
}

MachineMemory machine_memory(const std::string& root) {
  const std::string text = read_small_file(root + "/proc/meminfo").value_or("");
  MachineMemory memory;
  memory.total = std::strtoll(value_of(text, "MemTotal").c_str(), nullptr, 10) * 1024;
  memory.available = std::strtoll(value_of(text, "MemAvailable").c_str(), nullptr, 10) * 1024;
  for (const fs::path& group : groups_upward(root + "/sys/fs/cgroup", group_path("", root)))
    apply_limit(group, kVersion2, memory);
  for (const fs::path& group : groups_upward(root + "/sys/fs/cgroup/memory", group_path("memory", root)))
    apply_limit(group, kVersion1, memory);
  return memory;
}

Machine inspect_machine(const std::string& root) {
  Machine machine;
  machine.cpu = value_of(read_small_file(root + "/proc/cpuinfo").value_or(""), "model name");
  machine.cores = usable_cores();
  machine.memory = machine_memory(root);
  read_frequency(root, machine);
  machine.shared_memory = space_of(root + "/dev/shm");
  machine.system = value_of(read_small_file(root + "/etc/os-release").value_or(""), "PRETTY_NAME");
  machine.kernel = read_small_file(root + "/proc/sys/kernel/osrelease").value_or("");
  machine.is_wsl = is_wsl(root);
  machine.nvidia_module = nvidia_module(root);
  std::error_code ignored;
  machine.has_nvidia_gpu = nvidia_gpu_on_pci(root) ||
                           (machine.is_wsl && fs::exists(root + "/usr/lib/wsl/lib/libcuda.so.1", ignored));
  return machine;
}

}  // namespace gputrain::device
