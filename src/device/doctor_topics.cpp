#include "base/text.h"
#include "device/doctor_parts.h"

#include <utility>

namespace gputrain::device {
namespace {

struct TopicText {
  const char* id;
  const char* title;
  const char* subject;  // stands for what comes behind the title
};

TopicText text_of(Topic topic) {
  switch (topic) {
    case Topic::kCpu:
      return {"cpu", "CPU", ""};
    case Topic::kMemory:
      return {"memory", "memory", ""};
    case Topic::kGovernor:
      return {"cpu_governor", "CPU governor", ""};
    case Topic::kSharedMemory:
      return {"shared_memory", "shared memory", ""};
    case Topic::kNoGpu:
      return {"no_gpu", "GPU", ""};
    case Topic::kDriver:
      return {"driver", "NVIDIA driver", ""};
    case Topic::kCudnn:
      return {"cudnn", "cuDNN", ""};
    case Topic::kNccl:
      return {"nccl", "NCCL", ""};
    case Topic::kGpu:
      return {"gpu", "", "cuda:N"};
    case Topic::kHiddenGpu:
      return {"hidden_gpu", "", "MODEL"};
    case Topic::kCode:
      return {"code", "code for", "cuda:N"};
    case Topic::kPrecision:
      return {"precision", "precision on", "cuda:N"};
    case Topic::kFreeMemory:
      return {"free_memory", "free memory of", "cuda:N"};
    case Topic::kDisplay:
      return {"display", "display on", "cuda:N"};
    case Topic::kDriverModel:
      return {"driver_model", "driver model of", "cuda:N"};
    case Topic::kPersistence:
      return {"persistence", "persistence mode of", "cuda:N"};
    case Topic::kPowerLimit:
      return {"power_limit", "power limit of", "cuda:N"};
    case Topic::kPcieLink:
      return {"pcie_link", "PCIe link of", "cuda:N"};
    case Topic::kPcieGeneration:
      return {"pcie_generation", "PCIe generation of", "cuda:N"};
    case Topic::kClocks:
      return {"clocks", "clocks of", "cuda:N"};
    case Topic::kVariable:
      return {"variable", "", "VARIABLE"};
    case Topic::kFolder:
      return {"folder", "disk space for", "FOLDER"};
    case Topic::kTrial:
      return {"trial", "trial computation", ""};
  }
  return {"", "", ""};
}

std::string joined(const std::string& title, const std::string& subject) {
  return concat(title, title.empty() || subject.empty() ? "" : " ", subject);
}

}  // namespace

std::vector<Topic> all_topics() {
  std::vector<Topic> topics;
  for (int i = 0; i <= static_cast<int>(Topic::kTrial); ++i) topics.push_back(static_cast<Topic>(i));
  return topics;
}

std::string topic_id(Topic topic) {
  return text_of(topic).id;
}

std::string topic_title(Topic topic) {
  const TopicText text = text_of(topic);
  return joined(text.title, text.subject);
}

Finding make_finding(Topic topic, const std::string& subject, Finding::Level level, std::string found,
                     std::string cost, std::string advice) {
  return {topic,
          level,
          joined(text_of(topic).title, subject),
          std::move(found),
          std::move(cost),
          std::move(advice)};
}

}  // namespace gputrain::device
