#include "kernels/optimizer_step.h"

#include "kernels/launch.h"
#include "kernels/optimizer_step_math.h"
#include "kernels/optimizer_step_table.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace gputrain::kernels {
namespace {

auto fields(const OptimizerTensor& t) {
  return std::tie(t.weight, t.low, t.low_type, t.gradient, t.gradient_type, t.state1, t.state2, t.count,
                  t.lr_scale, t.weight_decay);
}

bool equal(const std::vector<OptimizerTensor>& a, const std::vector<OptimizerTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (fields(a[i]) != fields(b[i])) return false;
  }
  return true;
}

bool takes_part(const OptimizerTensor& t) {
  return t.count > 0 && t.gradient != nullptr;
}

[[noreturn]] void refuse(std::size_t tensor, const std::string& what) {
  throw std::invalid_argument("optimizer tensor " + std::to_string(tensor) + " " + what);
}

void check_tensors(const std::vector<OptimizerTensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const OptimizerTensor& t = tensors[i];
    if (t.count < 0) refuse(i, "has " + std::to_string(t.count) + " elements");
    if (!takes_part(t)) continue;
    if (t.weight == nullptr && t.low == nullptr) refuse(i, "has no weights, neither float32 nor 16-bit ones");
    if (t.low != nullptr && t.low_type == Element::kFloat32)
      refuse(i, "has low weights of type float32; expected float16 or bfloat16");
  }
}

bool allows_vectors(const OptimizerTensor& t) {
  return is_aligned(t.weight, 16) && is_aligned(t.state1, 16) && is_aligned(t.state2, 16) &&
         is_aligned(t.low, 8) && is_aligned(t.gradient, t.gradient_type == Element::kFloat32 ? 16 : 8);
}

class HostSteps final : public OptimizerSteps {
 public:
  void set(TableLayout layout, Stream) override { tensors_ = std::move(layout.tensors); }
  void sgd(const SgdRule& rule, const StepScalars& scalars, Stream) override {
    if (rule.momentum == 0) return step(SgdMath<false>(rule), scalars);
    step(SgdMath<true>(rule), scalars);
  }
  void adamw(const AdamWRule& rule, const StepScalars& scalars, Stream) override {
    step(AdamWMath(rule), scalars);
  }
  void lion(const LionRule& rule, const StepScalars& scalars, Stream) override {
    step(LionMath(rule), scalars);
  }

 private:
  template <class Rule>
  void step(const Rule& rule, const StepScalars& scalars) const {
    if (*scalars.apply == 0) return;
    for (const TableTensor& tensor : tensors_) {
      const StepNumbers numbers = step_numbers(rule, scalars, tensor.memory);
      for (std::int64_t i = 0; i < tensor.memory.count; ++i) step_element(rule, numbers, tensor, i);
    }
  }

  std::vector<TableTensor> tensors_;
};

}  // namespace

TableLayout lay_out(const std::vector<OptimizerTensor>& tensors) {
  TableLayout layout;
  std::int64_t elements = 0;
  for (const OptimizerTensor& t : tensors) {
    if (takes_part(t)) {
      const auto number = static_cast<std::int64_t>(layout.tensors.size());
      layout.tensors.push_back({t, elements, allows_vectors(t)});
      for (std::int64_t first = 0; first < t.count; first += kChunkElements)
        layout.chunks.push_back({number, first});
    }
    elements += t.count;
  }
  return layout;
}

OptimizerTable::OptimizerTable(bool on_cuda)
    : steps_(on_cuda ? optimizer_steps_cuda() : std::make_unique<HostSteps>()) {}
OptimizerTable::~OptimizerTable() = default;
OptimizerTable::OptimizerTable(OptimizerTable&&) noexcept = default;
OptimizerTable& OptimizerTable::operator=(OptimizerTable&&) noexcept = default;

void OptimizerTable::set(const std::vector<OptimizerTensor>& tensors, Stream stream) {
  if (equal(tensors, tensors_)) return;
  check_tensors(tensors);
  tensors_.clear();  // should the copy fail, the next set() makes it again
  steps_->set(lay_out(tensors), stream);
  tensors_ = tensors;
}

void OptimizerTable::check(int states, const StepScalars& scalars) const {
  if (scalars.lr == nullptr || scalars.gradient_scale == nullptr || scalars.apply == nullptr ||
      scalars.step == nullptr)
    throw std::invalid_argument("an optimizer step has no lr, gradient_scale, apply or step");
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const OptimizerTensor& t = tensors_[i];
    if (!takes_part(t)) continue;
    if (states >= 1 && t.state1 == nullptr) refuse(i, "has no state1, which this optimizer keeps");
    if (states >= 2 && t.state2 == nullptr) refuse(i, "has no state2, which this optimizer keeps");
  }
}

void OptimizerTable::sgd(const SgdRule& rule, const StepScalars& scalars, Stream stream) {
  check(rule.momentum == 0 ? 0 : 1, scalars);
  steps_->sgd(rule, scalars, stream);
}

void OptimizerTable::adamw(const AdamWRule& rule, const StepScalars& scalars, Stream stream) {
  check(AdamWMath::kStates, scalars);
  steps_->adamw(rule, scalars, stream);
}

void OptimizerTable::lion(const LionRule& rule, const StepScalars& scalars, Stream stream) {
  check(LionMath::kStates, scalars);
  steps_->lion(rule, scalars, stream);
}

}  // namespace gputrain::kernels
