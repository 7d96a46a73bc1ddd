#include "device/machine.h"

#include "support/catch.h"
#include "support/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <string>

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
