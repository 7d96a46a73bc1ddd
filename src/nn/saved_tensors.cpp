// LibTorch declares its engine in a header that includes all operators; only this file sees it.
#undef TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include "nn/saved_tensors.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <mutex>
#include <utility>

namespace gputrain::nn {
namespace {

thread_local SavedTensors* innermost = nullptr;
thread_local KeptWatch::Watch kept_watch;
thread_local const Module* called = nullptr;

class KeptAsItIs final : public Kept {
 public:
  explicit KeptAsItIs(const at::Tensor& tensor) : tensor_(tensor.detach()), version_(tensor_._version()) {
    if (kept_watch) kept_watch(called, tensor_);
  }

  at::Tensor get() override {
    TORCH_CHECK(tensor_._version() == version_, "a tensor of ", tensor_.toString(), " ", tensor_.sizes(),
                " that the backward pass needs was changed in place: it is at version ", tensor_._version(),
                ", expected version ", version_);
    return tensor_;
  }

 private:
  at::Tensor tensor_;
  std::int64_t version_;
};

class Hooks final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor& tensor) override { kept_ = keep_for_backward(tensor); }
  at::Tensor call_unpack_hook() override { return kept_->get(); }

 private:
  std::unique_ptr<Kept> kept_;
};

class Engine final : public torch::autograd::Engine {
 public:
  static torch::autograd::Engine& get() {
    static Engine engine;
    return engine;
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (innermost == nullptr && !kept_watch) return nullptr;
    return std::make_unique<Hooks>();
  }

 private:
  Engine() = default;
  ~Engine() override { stop(); }  // its threads call virtual functions
};

}  // namespace

void install_engine() {
  static std::once_flag once;
  std::call_once(once, [] { torch::autograd::set_default_engine_stub(&Engine::get); });
}

SavedTensors::SavedTensors(Keep keep) : keep_(std::move(keep)), outer_(innermost) {
  install_engine();
  innermost = this;
}

SavedTensors::~SavedTensors() {
  innermost = outer_;
}

std::unique_ptr<Kept> keep_for_backward(const at::Tensor& tensor) {
  std::unique_ptr<Kept> kept;
  if (innermost != nullptr) kept = innermost->keep_(tensor);
  if (!kept) kept = std::make_unique<KeptAsItIs>(tensor);
  return kept;
}

KeptWatch::KeptWatch(Watch watch) {
  install_engine();
  kept_watch = std::move(watch);
}

KeptWatch::~KeptWatch() {
  kept_watch = nullptr;
}

LayerCall::LayerCall(const Module& layer) : outer_(called) {
  called = &layer;
}

LayerCall::~LayerCall() {
  called = outer_;
}

}  // namespace gputrain::nn
