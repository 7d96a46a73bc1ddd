#include "run/flops.h"

#include "nn/guards.h"

#include <ATen/record_function.h>
#include <torch/csrc/profiler/util.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

namespace gputrain::run {
namespace {

constexpr std::array<std::string_view, 5> kCounted = {"aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm",
                                                      "aten::baddbmm"};

// LibTorch's observers are plain functions, and operators run by this thread alone are observed.
thread_local std::int64_t counted = 0;

std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& call) {
  const std::string_view name = call.name();
  if (std::find(kCounted.begin(), kCounted.end(), name) != kCounted.end()) {
    counted += static_cast<std::int64_t>(
        torch::profiler::impl::computeFlops(call.name(), torch::profiler::impl::saveExtraArgs(call)));
  }
  return nullptr;
}

class Counting {
 public:
  Counting()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(count).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
    counted = 0;
  }
  ~Counting() { at::removeCallback(handle_); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

std::int64_t forward_flops(nn::Module& model, const at::Tensor& input, const nn::Precision& precision) {
  const nn::EvaluationMode mode(model);
  const Counting counting;
  // Under autocast operators call themselves again, and would be counted twice.
  nn::forward(model, input, {std::nullopt, precision.weights});
  return counted;
}

}  // namespace gputrain::run
