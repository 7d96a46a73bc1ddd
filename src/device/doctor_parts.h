#pragma once

#include "device/doctor.h"

#include <string>
#include <vector>

// The parts of diagnose(). Each adds its findings at the end.
namespace gputrain::device {

using Findings = std::vector<Finding>;

// subject: the device, folder or variable that the topic's title leaves open; "" when it names none.
Finding make_finding(Topic topic, const std::string& subject, Finding::Level level, std::string found,
                     std::string cost = "", std::string advice = "");

// "12.0 GiB", or that it is not known.
std::string size_text(const Gpu& gpu);

// "8.6 and 9.0"
std::string capabilities_text(const std::vector<int>& capabilities);

// Whether this program's kernels may run there: as they are, or translated by the driver. True when it is not
// known what they were compiled for.
bool may_have_code_for(const Environment& environment, const Gpu& gpu);

// at_work: what NVML said of it while it was computing, in place of what it said when idle; may be null.
void look_at_gpu(const Environment& environment, const Gpu& gpu, const NvmlFacts* at_work,
                 Findings& findings);

void look_at_variables(const Environment& environment, Findings& findings);

}  // namespace gputrain::device
