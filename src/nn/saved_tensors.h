#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace gputrain::nn {

class Module;

// Makes LibTorch ask what is kept of saved tensors. To be called before the first backward pass of the
// process: LibTorch starts the threads of its engine once, and another engine would have none for GPUs. Every
// Module does so when it is made; later calls do nothing.
void install_engine();

// What is kept of a tensor that the backward pass needs.
class Kept {
 public:
  Kept() = default;
  virtual ~Kept() = default;
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  // The tensor, without history. Called on the thread that runs the backward pass, more than once perhaps.
  virtual at::Tensor get() = 0;
};

// While it lives, decides what is kept of the tensors that operators of this thread save for the backward
// pass; the scope opened last decides alone. Without one, each is kept as it is.
//
// The counterpart of torch.autograd.graph.saved_tensors_hooks. LibTorch's C++ has no such function, but asks
// its engine for hooks: ours is LibTorch's with that one question answered.
class SavedTensors {
 public:
  // Null: the tensor is kept as it is. `saved` may have a history, which must not be kept: it leads back to
  // what keeps it.
  using Keep = std::function<std::unique_ptr<Kept>(const at::Tensor& saved)>;

  explicit SavedTensors(Keep keep);
  ~SavedTensors();
  SavedTensors(const SavedTensors&) = delete;
  SavedTensors& operator=(const SavedTensors&) = delete;

 private:
  friend std::unique_ptr<Kept> keep_for_backward(const at::Tensor& tensor);
  Keep keep_;
  SavedTensors* outer_;
};

// Keeps `tensor` as the scope around the call decides. Where it is kept as it is, Kept::get throws c10::Error
// if it was changed in place since.
std::unique_ptr<Kept> keep_for_backward(const at::Tensor& tensor);

// While it lives, shows every tensor that is kept for backward by this thread, as it is or in part, with the
// innermost layer being called (null: none is). One at a time.
class KeptWatch {
 public:
  using Watch = std::function<void(const Module* layer, const at::Tensor& kept)>;

  explicit KeptWatch(Watch watch);
  ~KeptWatch();
  KeptWatch(const KeptWatch&) = delete;
  KeptWatch& operator=(const KeptWatch&) = delete;
};

// Tells that `layer` is being called while it lives.
class LayerCall {
 public:
  explicit LayerCall(const Module& layer);
  ~LayerCall();
  LayerCall(const LayerCall&) = delete;
  LayerCall& operator=(const LayerCall&) = delete;

 private:
  const Module* outer_;
};

}  // namespace gputrain::nn
