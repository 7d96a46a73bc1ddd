#pragma once

#include "nn/named_tensors.h"
#include "profile/ledger.h"

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gputrain::profile {

// Whose memory is whose. Keeps nothing alive: what was freed since it was entered counts no more. Memory
// counts once, however many tensors show parts of it.
class Book {
 public:
  // Counts memory of this device alone.
  explicit Book(at::Device device) : device_(device) {}

  void enter(Class kind, const at::Tensor& tensor);
  void enter(Class kind, const nn::NamedTensors& tensors);

  // An activation that `layer` keeps for backward.
  void keep(const std::string& layer, const at::Tensor& tensor);

  // Drops what is not alive any more.
  void forget_gone();

  // All that is alive now, by class, without what only the allocator knows (workspaces, rounding).
  Ledger sum_up() const;

 private:
  using Storage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Entry {
    Storage storage;
    Class kind;
    std::size_t layer;  // in layers_
  };

  Entry* entry_of(Class kind, const at::Tensor& tensor);

  at::Device device_;
  // By address, which no other storage takes while an entry knows it.
  std::unordered_map<const c10::StorageImpl*, Entry> entries_;
  std::vector<std::string> layers_;
  std::unordered_map<std::string, std::size_t> numbers_;  // in layers_
};

}  // namespace gputrain::profile
