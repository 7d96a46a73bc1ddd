#pragma once

#include "nn/saved_tensors.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Activation checkpointing: what operators keep for the backward pass is dropped, and computed again when
// that pass asks for it. Source: Chen et al. 2016; through saved tensors, as torch.utils.checkpoint without
// reentrance does it, so that the graph, and with it nesting, several outputs, and inputs without gradient,
// is that of a model without it.
namespace gputrain::nn {

class Module;

// What is not kept of a region: kFull, anything but its inputs and outputs; kSelective, anything but these
// and the results of layers that are dear to compute (convolutions, products of matrices).
enum class Recompute { kFull, kSelective };

// A part of a model whose activations are computed again. A second pass stops as soon as it has what backward
// needs; it draws the random numbers of the first, in its precision and mode, and leaves generators, running
// statistics and counters alone.
class Region {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Body = std::function<Tensors(const Tensors&)>;

  // `name`: for messages. `owner`: whose mode, training or evaluation, the second pass runs in; it outlives
  // every graph made here.
  Region(std::string name, Module& owner, Recompute how);

  // body(inputs). It has to compute the same from the same inputs each time. Without gradients nothing is
  // recorded, as ever. Throws Error(kUsage) naming the region when it changes an input in place. The backward
  // pass throws c10::Error when a second pass saves other tensors than the first: more, fewer, or of other
  // types or shapes.
  Tensors operator()(const Body& body, const Tensors& inputs);
  at::Tensor operator()(const std::function<at::Tensor(const at::Tensor&)>& body, const at::Tensor& input);

  const std::string& name() const { return name_; }

 private:
  friend class RegionPass;
  std::string name_;
  Module& owner_;
  Recompute how_;
  bool draws_ = false;  // random numbers, in a pass so far
};

// The units that a model repeats, called one after the other.
class Blocks {
 public:
  using Unit = std::function<at::Tensor(const at::Tensor&)>;

  void add(std::string name, Unit unit);
  at::Tensor operator()(at::Tensor input);

  // From now on each `every` units that follow each other are a region (the last may be shorter). `owner`: as
  // for Region.
  void recompute(Module& owner, Recompute how, std::int64_t every);

  std::size_t size() const { return units_.size(); }

 private:
  std::vector<std::pair<std::string, Unit>> units_;
  std::int64_t every_ = 1;
  std::vector<std::unique_ptr<Region>> regions_;
};

// What a layer hands to its second call.
struct Remembered {
  at::Tensor output;
  std::vector<at::Tensor> memo;  // without history, or `output` itself
};

// For layers, whose operators save nothing of size but `input`: first() in the first pass through a region
// and outside of regions; in the second pass again(memo), which must give the same. `is_dear`: the memo is
// the output itself, and is kept in selective regions alone.
at::Tensor remember(const at::Tensor& input, bool is_dear, const std::function<Remembered()>& first,
                    const std::function<at::Tensor(const std::vector<at::Tensor>& memo)>& again);

// This thread computes something for the second time: what a layer counts has been counted.
bool is_recomputing();

}  // namespace gputrain::nn
