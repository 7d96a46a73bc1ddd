#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <optional>

namespace gputrain::nn {

class Module;

// The types a model computes in. Neither: float32.
struct Precision {
  std::optional<at::ScalarType> autocast;  // of the operators that gain by it; weights are float32
  std::optional<at::ScalarType> weights;   // of weights and inputs; layers that normalise keep float32
};

// Lets operators run in `type` while it lives (absent: autocast is off), as LibTorch's autocast lists say:
// products and convolutions in `type`, losses and reductions in float32. Restores what was before, also after
// an exception; casts of weights are kept until the outermost one ends, and so never outlive an update.
class Autocast {
 public:
  Autocast(at::DeviceType device, std::optional<at::ScalarType> type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  bool active_ = false;
  at::ScalarType type_before_ = at::kFloat;
};

// model(input) in `precision`. The result is float32, whatever the model computes in. An input that is cast
// is given up first: whoever moves his into it has it in memory once.
at::Tensor forward(Module& model, at::Tensor input, const Precision& precision);

// What operators on `device` run in now, where autocast is on.
std::optional<at::ScalarType> autocast_type(at::DeviceType device);

}  // namespace gputrain::nn
