#include "device/machine.h"

#include "support/catch.h"
#include "support/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <string>

using gputrain::device::inspect_machine;
using gputrain::device::Machine;
using gputrain::device::machine_memory;
using gputrain::device::MachineMemory;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A machine of 8 GiB, 6 of them free.
void write_machine(const fs::path& root) {
  write(root / "proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 6291456 kB\n");
}

std::string bytes(std::int64_t mib) {
  return std::to_string(mib * kMiB);
}

}  // namespace

TEST_CASE("machine: without a limit the memory is that of the machine", "[device]") {
  const gputrain::testing::TemporaryFolder root;
  write_machine(root.path());
  write(root / "proc/self/cgroup", "0::/user\n");
  write(root / "sys/fs/cgroup/user/memory.max", "max\n");
  const MachineMemory memory = machine_memory(root.path().string());
  CHECK(memory.total == 8192 * kMiB);
  CHECK(memory.available == 6144 * kMiB);
}

TEST_CASE("machine: a group's limit narrows the memory, and its cache of files counts as free", "[device]") {
  const gputrain::testing::TemporaryFolder root;
  write_machine(root.path());
  write(root / "proc/self/cgroup", "0::/job/step\n");
  write(root / "sys/fs/cgroup/job/memory.max", bytes(1024));
  write(root / "sys/fs/cgroup/job/memory.current", bytes(900));
  write(root / "sys/fs/cgroup/job/memory.stat", "anon 5\nfile " + bytes(800) +
                                                    "\ninactive_anon 7\nactive_anon 7\ninactive_file " +
                                                    bytes(500) + "\nactive_file " + bytes(200) + "\n");
  const MachineMemory memory = machine_memory(root.path().string());
  CHECK(memory.total == 1024 * kMiB);
  CHECK(memory.available == 824 * kMiB);
}

TEST_CASE("machine: version 1 of control groups is read too", "[device]") {
  const gputrain::testing::TemporaryFolder root;
  write_machine(root.path());
  write(root / "proc/self/cgroup", "5:memory:/job\n1:name=systemd:/\n");
  write(root / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", bytes(2048));
  write(root / "sys/fs/cgroup/memory/job/memory.usage_in_bytes", bytes(1500));
  write(root / "sys/fs/cgroup/memory/job/memory.stat",
        "inactive_file 1\nactive_file 1\ntotal_inactive_file " + bytes(300) + "\ntotal_active_file " +
            bytes(200));
  CHECK(machine_memory(root.path().string()).available == 1048 * kMiB);
}

TEST_CASE("machine: one core whose governor saves power is what is told", "[device]") {
  const gputrain::testing::TemporaryFolder root;
  for (const char* core : {"cpu0", "cpu1", "cpu2"}) {
    const fs::path folder = root / "sys/devices/system/cpu" / core / "cpufreq";
    write(folder / "scaling_governor", core == std::string("cpu1") ? "powersave\n" : "performance\n");
    write(folder / "scaling_driver", "acpi-cpufreq\n");
  }
  const Machine machine = inspect_machine(root.path().string());
  CHECK(machine.governor == "powersave");
  CHECK(machine.frequency_driver == "acpi-cpufreq");
}

TEST_CASE("machine: without frequency control, shared memory, or a driver these are absent", "[device]") {
  const gputrain::testing::TemporaryFolder root;
  const Machine machine = inspect_machine(root.path().string());
  CHECK(machine.governor.empty());
  CHECK_FALSE(machine.shared_memory.has_value());
  CHECK(machine.nvidia_module.empty());
  CHECK_FALSE(machine.has_nvidia_gpu);
  CHECK_FALSE(machine.is_wsl);
}

TEST_CASE("machine: WSL is known by its kernel or by the GPU's device, and its GPU by Windows' library",
          "[device]") {
  const gputrain::testing::TemporaryFolder stock;
  write(stock / "proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2 (root@1) (gcc) #1 SMP\n");
  CHECK(inspect_machine(stock.path().string()).is_wsl);
  CHECK_FALSE(inspect_machine(stock.path().string()).has_nvidia_gpu);
  write(stock / "usr/lib/wsl/lib/libcuda.so.1", "");
  CHECK(inspect_machine(stock.path().string()).has_nvidia_gpu);

  const gputrain::testing::TemporaryFolder own_kernel;
  write(own_kernel / "proc/version", "Linux version 6.12.1 (me@home) (gcc) #1 SMP\n");
  write(own_kernel / "dev/dxg", "");
  CHECK(inspect_machine(own_kernel.path().string()).is_wsl);
}

TEST_CASE("machine: shared memory has the size of the file system that /dev/shm is on", "[device]") {
  const gputrain::testing::TemporaryFolder root;
  fs::create_directories(root / "dev/shm");
  const Machine machine = inspect_machine(root.path().string());
  REQUIRE(machine.shared_memory.has_value());
  CHECK(machine.shared_memory->total == static_cast<std::int64_t>(fs::space(root / "dev/shm").capacity));
}

TEST_CASE("machine: the loaded driver's version is read from either kind of module", "[device]") {
  const gputrain::testing::TemporaryFolder root;
  const fs::path path = root / "proc/driver/nvidia/version";
  write(path,
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
        "GCC version:  gcc version 12.2.0\n");
  CHECK(inspect_machine(root.path().string()).nvidia_module == "535.183.01");
  write(path, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n");
  CHECK(inspect_machine(root.path().string()).nvidia_module == "580.65.06");
}

TEST_CASE("machine: a GPU without a driver is seen on the bus", "[device]") {
  const gputrain::testing::TemporaryFolder root;
  write(root / "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  write(root / "sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
  CHECK(inspect_machine(root.path().string()).has_nvidia_gpu);
}
