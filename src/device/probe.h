#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>

namespace gputrain::device {

// Runs a small matrix product, a convolution and its backward pass on the device and compares them with
// float64 on the CPU. Absent: all is well; else what went wrong, in one sentence. Throws nothing; leaves
// generators and TF32 settings as they were.
std::optional<std::string> probe(at::Device device);

}  // namespace gputrain::device
