#pragma once

#include "nn/named_tensors.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gputrain::nn {

class Blocks;
class Region;
enum class Recompute;

// A layer, block or model: parameters, buffers and children by name, and a mode (training or evaluation).
// Names are those of PyTorch's state_dict: "layer1.0.bn2.running_var".
//
// It stands in for torch::nn::Module because that header alone costs 20 s a file (g++ 12, -O2), this one 6,
// and because C++ has no forward hooks: every layer and block is called through operator(), the one place
// where recomputation, checks and accounting can attach.
class Module {
 public:
  Module();
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  at::Tensor operator()(const at::Tensor& input);

  // "layer1.0.conv1" of a module inside this one; "the model" of itself.
  std::string name_of(const Module& inner) const;

  // Own ones first, then the children's, each in the order they were added.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::int64_t parameter_count() const;

  // Adds to every host counter of training passes (BatchNorm2d's) in this module and those inside it. A
  // forward pass counts itself; this is for passes that were undone (negative), or run without the host's
  // part. Each pass of the model is one of each module: one that is called twice or left out would count
  // otherwise.
  void count_passes(std::int64_t passes);

  // What is inside of this module, with its name, children behind their parents.
  std::vector<std::pair<std::string, Module*>> named_modules();

  // False where only what is inside of it is called.
  virtual bool is_called() const { return true; }

  // From now on what this module keeps for backward is computed again (nn/recompute.h); of one that is not
  // called, what each of its children keeps. `name`: for messages.
  void recompute(const std::string& name, Recompute how);

  // The units that a model repeats; null: it has none.
  virtual Blocks* blocks() { return nullptr; }

  void train(bool on = true);
  bool training() const { return training_; }

  // Moves parameters and buffers; tensors of four dimensions become channels-last when asked. Handles taken
  // before stay valid, since the tensors change in place. Host counters (BatchNorm2d's) stay on the host.
  // Floating-point buffers become parts of one flat tensor, which is returned (undefined when there are
  // none): saving and undoing what a forward pass did to all of them is one copy. Call it on the whole model.
  // `weights`: what floating-point parameters become, but those of modules that keep float32.
  at::Tensor to(at::Device device, bool channels_last, at::ScalarType weights = at::kFloat);

 protected:
  virtual at::Tensor forward(const at::Tensor& input) = 0;

  // Its result takes long to compute and is kept by selective recomputation.
  virtual bool is_dear() const { return false; }

  // Normalisation: its parameters are few, and 16 bits would cost it its statistics.
  virtual bool keeps_float32() const { return false; }

  // This module's own counter of training passes, where it keeps one.
  virtual void add_passes(std::int64_t /*passes*/) {}

  at::Tensor add_parameter(const std::string& name, at::Tensor value);
  at::Tensor add_buffer(const std::string& name, at::Tensor value);
  template <class M>
  M& add(const std::string& name, std::unique_ptr<M> child) {
    M& added = *child;
    children_.emplace_back(name, std::move(child));
    return added;
  }

 private:
  at::Tensor run(const at::Tensor& input);
  template <class Visit>
  void walk(const std::string& prefix, const Visit& visit) const;

  NamedTensors parameters_;
  NamedTensors buffers_;
  std::unique_ptr<Region> region_;
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
  bool training_ = true;
};

// Shows the output of every module that this thread calls, inner ones first, while it lives. One at a time.
class CallWatch {
 public:
  using Watch = std::function<void(const Module& module, const at::Tensor& output)>;
  explicit CallWatch(Watch watch);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;
};

// Children named 0, 1, 2 ... under the name of the group, which is not called itself.
class Group : public Module {
 public:
  Module& push(std::unique_ptr<Module> child);
  bool is_called() const override { return false; }

 protected:
  at::Tensor forward(const at::Tensor& input) override;  // throws std::logic_error

  std::vector<Module*> order_;
};

// The same, called one after the other, as torch.nn.Sequential does.
class Sequential : public Group {
 public:
  bool is_called() const override { return true; }

 protected:
  at::Tensor forward(const at::Tensor& input) override;
};

}  // namespace gputrain::nn
