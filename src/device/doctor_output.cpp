#include "base/text.h"
#include "device/doctor.h"
#include "device/environment_json.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace gputrain::device {
namespace {

const char* level_name(Finding::Level level) {
  switch (level) {
    case Finding::Level::kOk:
      return "ok";
    case Finding::Level::kNote:
      return "note";
    case Finding::Level::kWarning:
      return "warning";
    case Finding::Level::kProblem:
      return "problem";
  }
  return "";
}

std::string with_version(const char* name, const std::string& version) {
  return version.empty() ? "" : concat(", ", name, " ", version);
}

std::string headline(const Environment& environment) {
  const std::string cuda = environment.cuda.built ? cuda_version_text(environment.cuda.runtime) : "";
  return concat("gputrain ", environment.gputrain, ", LibTorch ", environment.libtorch,
                environment.cuda.built ? with_version("CUDA", cuda) : " without CUDA",
                with_version("cuDNN", environment.cudnn), with_version("NCCL", environment.nccl), "\n",
                environment.machine.system, with_version("Linux", environment.machine.kernel), "\n");
}

std::string lines_of(const Finding& finding) {
  const std::string indent(10, ' ');
  std::string level = level_name(finding.level);
  level.resize(indent.size(), ' ');
  std::string text = concat(level, finding.what, ": ", finding.found, "\n");
  if (!finding.cost.empty()) text += concat(indent, "it costs: ", finding.cost, "\n");
  if (!finding.advice.empty()) text += concat(indent, "what to do: ", finding.advice, "\n");
  return text;
}

}  // namespace

std::string to_text(const Environment& environment, const Diagnosis& diagnosis) {
  std::string text = headline(environment);
  for (const Finding& finding : diagnosis.findings) text += lines_of(finding);
  return text + concat("will it train: ", diagnosis.verdict, "\n");
}

std::string to_json(const Environment& environment, const Diagnosis& diagnosis) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["will_train"] = diagnosis.will_train;
  json["device"] = diagnosis.device;
  json["verdict"] = diagnosis.verdict;
  json["findings"] = Json::array();
  for (const Finding& finding : diagnosis.findings) {
    Json entry;
    entry["level"] = level_name(finding.level);
    entry["topic"] = topic_id(finding.topic);
    entry["what"] = finding.what;
    entry["found"] = finding.found;
    if (!finding.cost.empty()) entry["cost"] = finding.cost;
    if (!finding.advice.empty()) entry["advice"] = finding.advice;
    json["findings"].push_back(std::move(entry));
  }
  json["environment"] = json_of(environment);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gputrain::device
