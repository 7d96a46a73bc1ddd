#pragma once

#include "device/capacity.h"
#include "device/environment.h"

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <vector>

namespace gputrain::device {

// What a finding is about; docs/doctor.md describes each.
enum class Topic {
  kCpu,
  kMemory,
  kGovernor,
  kSharedMemory,
  kNoGpu,
  kDriver,
  kCudnn,
  kNccl,
  kGpu,
  kHiddenGpu,
  kCode,
  kPrecision,
  kFreeMemory,
  kDisplay,
  kDriverModel,
  kPersistence,
  kPowerLimit,
  kPcieLink,
  kPcieGeneration,
  kClocks,
  kVariable,
  kFolder,
  kTrial,  // stays the last
};

std::vector<Topic> all_topics();
std::string topic_id(Topic topic);     // "power_limit", for scripts
std::string topic_title(Topic topic);  // "power limit of cuda:N": N, MODEL, VARIABLE and FOLDER stand for one

struct Finding {
  enum class Level { kOk, kNote, kWarning, kProblem };
  Topic topic = Topic::kCpu;
  Level level = Level::kOk;
  std::string what;    // the title with its subject: "power limit of cuda:0"
  std::string found;   // "80 W; the default is 130 W"
  std::string cost;    // what it does to training; "" when nothing
  std::string advice;  // what to type or to change; "" when there is nothing to do
};

struct FolderSpace {
  std::string path;
  Capacity space;
};

// What `doctor` tried out, beside the environment.
struct Trial {
  std::optional<std::string> probe_failure;  // of the device that `auto` chooses
  std::optional<NvmlFacts> at_work;   // of that device, right after it computed: clocks and links are up
  std::optional<FolderSpace> folder;  // where runs are written
};

struct Diagnosis {
  std::vector<Finding> findings;
  bool will_train = false;
  std::string device;   // that `auto` chooses: "cuda:0", "cpu"
  std::string verdict;  // "yes, on cuda:0 (NVIDIA H200, 139.8 GiB)", "no: ..."
};

// Probes the device and measures the space where `folder` is or would be created.
Trial try_out(at::Device device, const std::string& folder);

// What is there and what it does to training. Looks at its arguments alone.
Diagnosis diagnose(const Environment& environment, const Trial& trial);

// For people, in lines that end with '\n'; the last one is the verdict.
std::string to_text(const Environment& environment, const Diagnosis& diagnosis);

// will_train, device, verdict, findings and the environment, as JSON.
std::string to_json(const Environment& environment, const Diagnosis& diagnosis);

}  // namespace gputrain::device
