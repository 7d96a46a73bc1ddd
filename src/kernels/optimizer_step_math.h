#pragma once

#include "kernels/half.h"
#include "kernels/host_device.h"
#include "kernels/optimizer_step.h"
#include "kernels/optimizer_step_table.h"
#include "kernels/random_math.h"

#include <cmath>
#include <cstdint>

namespace gputrain::kernels {

// Operations that the device's compiler does not fuse, each rounded to the nearest.
namespace rounded {

#ifdef __CUDA_ARCH__
__device__ inline float mul(float a, float b) {
  return __fmul_rn(a, b);
}
__device__ inline float add(float a, float b) {
  return __fadd_rn(a, b);
}
__device__ inline float div(float a, float b) {
  return __fdiv_rn(a, b);
}
// a * b + c, rounded once.
__device__ inline float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
__device__ inline float root(float a) {
  return __fsqrt_rn(a);
}
__device__ inline double mul(double a, double b) {
  return __dmul_rn(a, b);
}
#else
GPUTRAIN_HOST_DEVICE inline float mul(float a, float b) {
  return a * b;
}
GPUTRAIN_HOST_DEVICE inline float add(float a, float b) {
  return a + b;
}
GPUTRAIN_HOST_DEVICE inline float div(float a, float b) {
  return a / b;
}
GPUTRAIN_HOST_DEVICE inline float fma(float a, float b, float c) {
  return std::fma(a, b, c);
}
GPUTRAIN_HOST_DEVICE inline float root(float a) {
  return std::sqrt(a);
}
GPUTRAIN_HOST_DEVICE inline double mul(double a, double b) {
  return a * b;
}
#endif

GPUTRAIN_HOST_DEVICE inline float sub(float a, float b) {
  return add(a, -b);
}

}  // namespace rounded

// 1 - beta^step, for beta in 0 .. 1 and a whole step of at least 1. By multiplication alone, so that every
// device has the same bits; the relative error stays below 2e-16 / (1 - beta), because an error of beta^step
// that grows with the step counts the less the smaller the power is.
GPUTRAIN_HOST_DEVICE inline double bias_correction(double beta, float step) {
  double power = 1;
  for (std::uint32_t rest = static_cast<std::uint32_t>(step); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) power = rounded::mul(power, beta);
    beta = rounded::mul(beta, beta);
  }
  return 1 - power;
}

// One element on its way through a step.
struct StepElement {
  float weight;
  float gradient;
  float state1;
  float state2;
};

// What all elements of a tensor share in a step. No initialisers: it lies in shared memory.
struct StepNumbers {
  float gradient_scale;
  float lr;  // lr_scale included
  float weight_decay;
  float corrected_lr;     // adamw: lr / (1 - beta1^step)
  float root_correction;  // adamw: 1 / sqrt(1 - beta2^step)
  std::uint64_t random_seed;
};

// The rules, as kernels read them: kStates says how many states they keep, prepare() what they need to know
// of a step, update() changes an element whose gradient has been scaled.
// Rounded where PyTorch's SGD rounds (torch.optim.SGD, on the CPU and foreach on CUDA): of equal gradients
// both make equal bits.
template <bool kMomentum>
struct SgdMath {
  static constexpr int kStates = kMomentum ? 1 : 0;
  float momentum;
  bool nesterov;

  explicit SgdMath(const SgdRule& rule)
      : momentum(static_cast<float>(rule.momentum)), nesterov(rule.nesterov) {}

  GPUTRAIN_HOST_DEVICE void prepare(float, StepNumbers&) const {}

  GPUTRAIN_HOST_DEVICE void update(StepElement& e, const StepNumbers& n) const {
    using namespace rounded;
    const float g = fma(n.weight_decay, e.weight, e.gradient);
    float direction = g;
    if constexpr (kMomentum) {
      e.state1 = add(mul(momentum, e.state1), g);
      direction = nesterov ? fma(momentum, e.state1, g) : e.state1;
    }
    e.weight = fma(-n.lr, direction, e.weight);
  }
};

struct AdamWMath {
  static constexpr int kStates = 2;
  double exact_beta1;
  double exact_beta2;
  float beta1;
  float beta2;
  float rest1;  // 1 - beta1
  float rest2;
  float eps;
  bool decoupled;

  explicit AdamWMath(const AdamWRule& rule)
      : exact_beta1(rule.beta1),
        exact_beta2(rule.beta2),
        beta1(static_cast<float>(rule.beta1)),
        beta2(static_cast<float>(rule.beta2)),
        rest1(static_cast<float>(1 - rule.beta1)),
        rest2(static_cast<float>(1 - rule.beta2)),
        eps(static_cast<float>(rule.eps)),
        decoupled(rule.decoupled) {}

  GPUTRAIN_HOST_DEVICE void prepare(float step, StepNumbers& n) const {
    using namespace rounded;
    n.corrected_lr = div(n.lr, static_cast<float>(bias_correction(exact_beta1, step)));
    n.root_correction = div(1, root(static_cast<float>(bias_correction(exact_beta2, step))));
  }

  GPUTRAIN_HOST_DEVICE void update(StepElement& e, const StepNumbers& n) const {
    using namespace rounded;
    float g = e.gradient;
    if (decoupled) {
      e.weight = sub(e.weight, mul(mul(n.lr, n.weight_decay), e.weight));
    } else {
      g = add(g, mul(n.weight_decay, e.weight));
    }
    e.state1 = add(mul(beta1, e.state1), mul(rest1, g));
    e.state2 = add(mul(beta2, e.state2), mul(rest2, mul(g, g)));
    const float deviation = add(mul(root(e.state2), n.root_correction), eps);
    e.weight = sub(e.weight, div(mul(n.corrected_lr, e.state1), deviation));
  }
};

struct LionMath {
  static constexpr int kStates = 1;
  float beta1;
  float beta2;
  float rest1;  // 1 - beta1
  float rest2;

  explicit LionMath(const LionRule& rule)
      : beta1(static_cast<float>(rule.beta1)),
        beta2(static_cast<float>(rule.beta2)),
        rest1(static_cast<float>(1 - rule.beta1)),
        rest2(static_cast<float>(1 - rule.beta2)) {}

  GPUTRAIN_HOST_DEVICE void prepare(float, StepNumbers&) const {}

  GPUTRAIN_HOST_DEVICE void update(StepElement& e, const StepNumbers& n) const {
    using namespace rounded;
    const float c = add(mul(beta1, e.state1), mul(rest1, e.gradient));
    const float sign = c > 0 ? 1.0F : c < 0 ? -1.0F : c;  // NaN stays
    e.weight = sub(e.weight, mul(n.lr, add(sign, mul(n.weight_decay, e.weight))));
    e.state1 = add(mul(beta2, e.state1), mul(rest2, e.gradient));
  }
};

template <class Rule>
GPUTRAIN_HOST_DEVICE StepNumbers step_numbers(const Rule& rule, const StepScalars& scalars,
                                              const OptimizerTensor& tensor) {
  StepNumbers n{};
  n.gradient_scale = *scalars.gradient_scale;
  n.lr = rounded::mul(*scalars.lr, tensor.lr_scale);
  n.weight_decay = tensor.weight_decay;
  n.random_seed = random_bits(scalars.seed, static_cast<std::uint64_t>(*scalars.step));
  rule.prepare(*scalars.step, n);
  return n;
}

// A stored value as a float; `type` tells what 16 bits are.
GPUTRAIN_HOST_DEVICE inline float widened(float stored, Element) {
  return stored;
}
GPUTRAIN_HOST_DEVICE inline float widened(std::uint16_t stored, Element type) {
  return type == Element::kFloat16 ? half_to_float(stored) : bfloat16_to_float(stored);
}

GPUTRAIN_HOST_DEVICE inline std::uint16_t rounded_to(Element type, float value) {
  return type == Element::kFloat16 ? float_to_half(value) : float_to_bfloat16(value);
}
GPUTRAIN_HOST_DEVICE inline std::uint16_t rounded_randomly_to(Element type, float value,
                                                              std::uint64_t random) {
  return type == Element::kFloat16 ? float_to_half(value, random) : float_to_bfloat16(value, random);
}

// The whole step of element i of a tensor.
template <class Rule>
GPUTRAIN_HOST_DEVICE void step_element(const Rule& rule, const StepNumbers& n, const TableTensor& tensor,
                                       std::int64_t i) {
  const OptimizerTensor& t = tensor.memory;
  auto* const low = static_cast<std::uint16_t*>(t.low);
  const float gradient = t.gradient_type == Element::kFloat32
                             ? static_cast<const float*>(t.gradient)[i]
                             : widened(static_cast<const std::uint16_t*>(t.gradient)[i], t.gradient_type);
  StepElement e{};
  e.weight = t.weight != nullptr ? t.weight[i] : widened(low[i], t.low_type);
  e.gradient = rounded::mul(gradient, n.gradient_scale);
  if constexpr (Rule::kStates >= 1) e.state1 = t.state1[i];
  if constexpr (Rule::kStates >= 2) e.state2 = t.state2[i];
  rule.update(e, n);
  if constexpr (Rule::kStates >= 1) t.state1[i] = e.state1;
  if constexpr (Rule::kStates >= 2) t.state2[i] = e.state2;
  if (t.weight == nullptr) {
    const auto number = static_cast<std::uint64_t>(tensor.first_element + i);
    low[i] = rounded_randomly_to(t.low_type, e.weight, random_bits(n.random_seed, number));
    return;
  }
  t.weight[i] = e.weight;
  if (low != nullptr) low[i] = rounded_to(t.low_type, e.weight);
}

}  // namespace gputrain::kernels
