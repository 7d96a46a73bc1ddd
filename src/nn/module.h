#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gputrain::nn {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// A layer, block or model: parameters, buffers and children by name, and a mode (training or evaluation).
// Names are those of PyTorch's state_dict: "layer1.0.bn2.running_var".
//
// It stands in for torch::nn::Module because that header alone costs 20 s a file (g++ 12, -O2), this one 6,
// and because C++ has no forward hooks: every layer and block is called through operator(), the one place
// where recomputation, checks and accounting can attach.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  at::Tensor operator()(const at::Tensor& input) { return forward(input); }

  // Own ones first, then the children's, each in the order they were added.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::int64_t parameter_count() const;

  void train(bool on = true);
  bool training() const { return training_; }

  // Moves parameters and buffers; tensors of four dimensions become channels-last when asked. Handles taken
  // before stay valid, since the tensors change in place. Host counters (BatchNorm2d's) stay on the host.
  // Floating-point buffers become parts of one flat tensor, which is returned (undefined when there are
  // none): saving and undoing what a forward pass did to all of them is one copy. Call it on the whole model.
  at::Tensor to(at::Device device, bool channels_last);

 protected:
  virtual at::Tensor forward(const at::Tensor& input) = 0;

  at::Tensor add_parameter(const std::string& name, at::Tensor value);
  at::Tensor add_buffer(const std::string& name, at::Tensor value);
  template <class M>
  M& add(const std::string& name, std::unique_ptr<M> child) {
    M& added = *child;
    children_.emplace_back(name, std::move(child));
    return added;
  }

 private:
  template <class Visit>
  void walk(const std::string& prefix, const Visit& visit) const;

  NamedTensors parameters_;
  NamedTensors buffers_;
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
  bool training_ = true;
};

// Children called one after the other, named 0, 1, 2 ... as torch.nn.Sequential does.
class Sequential : public Module {
 public:
  Module& push(std::unique_ptr<Module> child);

 protected:
  at::Tensor forward(const at::Tensor& input) override;

 private:
  std::vector<Module*> order_;
};

}  // namespace gputrain::nn
