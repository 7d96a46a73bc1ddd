#include "profile/book.h"

namespace gputrain::profile {

// The entry that this has made or changed; nullptr where the memory belongs to a class before it, or is none
// of the device.
Book::Entry* Book::entry_of(Class kind, const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.device() != device_) return nullptr;
  const c10::Storage& storage = tensor.storage();
  const auto [found, is_new] =
      entries_.try_emplace(storage.unsafeGetStorageImpl(), Entry{storage.getWeakStorageImpl(), kind, 0});
  if (!is_new && found->second.kind <= kind) return nullptr;
  found->second.kind = kind;
  return &found->second;
}

void Book::enter(Class kind, const at::Tensor& tensor) {
  entry_of(kind, tensor);
}

void Book::enter(Class kind, const nn::NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) enter(kind, tensor);
}

void Book::keep(const std::string& layer, const at::Tensor& tensor) {
  Entry* entry = entry_of(Class::kActivations, tensor);
  if (entry == nullptr) return;
  const auto [found, is_new] = numbers_.try_emplace(layer, layers_.size());
  if (is_new) layers_.push_back(layer);
  entry->layer = found->second;
}

void Book::forget_gone() {
  std::erase_if(entries_, [](const auto& entry) { return entry.second.storage.expired(); });
}

Ledger Book::sum_up() const {
  Ledger ledger;
  for (const std::string& layer : layers_) ledger.layers.push_back({layer, 0});
  for (const auto& [address, entry] : entries_) {
    const auto alive = entry.storage.lock();
    if (!alive) continue;
    const auto bytes = static_cast<std::int64_t>(alive->nbytes());
    ledger[entry.kind] += bytes;
    if (entry.kind == Class::kActivations) ledger.layers[entry.layer].bytes += bytes;
  }
  std::erase_if(ledger.layers, [](const LayerBytes& layer) { return layer.bytes == 0; });
  return ledger;
}

}  // namespace gputrain::profile
