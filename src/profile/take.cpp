#include "profile/take.h"

#include "nn/module.h"
#include "nn/saved_tensors.h"
#include "optim/freeze.h"
#include "profile/allocator.h"

#include <unordered_map>

namespace gputrain::profile {
namespace {

bool is_master(const std::string& state) {
  return state.size() > 7 && state.compare(state.size() - 7, 7, ".master") == 0;
}

std::int64_t bytes_of(const nn::NamedTensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, value] : tensors) bytes += static_cast<std::int64_t>(value.nbytes());
  return bytes;
}

std::string name_of(const nn::Module& model, const nn::Module* layer) {
  return layer == nullptr ? "the objective" : model.name_of(*layer);
}

std::int64_t requested_now(at::Device device) {
  const Allocated now = allocated_now(device);
  return now.bytes - now.rounding;
}

// On while it lives.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool& flag_;
};

// A layer that is called twice is one.
std::vector<LayerBytes> by_layer(const std::vector<LayerBytes>& calls) {
  std::vector<LayerBytes> layers;
  std::unordered_map<std::string, std::size_t> places;
  for (const auto& [layer, bytes] : calls) {
    const auto [found, is_new] = places.try_emplace(layer, layers.size());
    if (is_new) layers.push_back({layer, 0});
    layers[found->second].bytes += bytes;
  }
  return layers;
}

// Those that matter, when all of them together are `total`.
std::vector<LayerBytes> suspects(const std::vector<LayerBytes>& growth, std::int64_t total) {
  if (total < kLeastGrowth) return {};
  std::vector<LayerBytes> layers = by_layer(growth);
  std::erase_if(layers, [&](const LayerBytes& layer) { return layer.bytes < total / 10; });
  return largest(layers, layers.size());
}

}  // namespace

void enter(Book& book, const Owners& owners, const Held& held) {
  book.enter(Class::kWeights, owners.model.named_parameters());
  for (const auto& [name, state] : owners.optimizer.state()) {
    book.enter(is_master(name) ? Class::kMasters : Class::kOptimizerStates, state);
  }
  if (owners.ema != nullptr) book.enter(Class::kAverages, owners.ema->averages());
  book.enter(Class::kBuffers, owners.model.named_buffers());
  for (const auto* split : {owners.data.train.get(), owners.data.validation.get()}) {
    if (split == nullptr) continue;
    for (const at::Tensor& tensor : split->held()) book.enter(Class::kDataSet, tensor);
  }
  for (const auto& [kind, tensor] : held) book.enter(kind, tensor);
}

LedgerTaker::LedgerTaker(at::Device device, const Owners& owners, device::MemoryMeter& meter,
                         std::function<Held()> held)
    : device_(device), owners_(owners), meter_(meter), held_(std::move(held)), book_(device) {
  ledger_.device = device.str();
}

void LedgerTaker::start() {
  enter(book_, owners_, held_());
  ledger_.start = measure();
}

void LedgerTaker::begin(std::int64_t window, std::int64_t micro_batches, bool warm) {
  ledger_.window = window;
  ledger_.micro_batches = micro_batches;
  ledger_.growth.reset();
  warm_ = warm;
}

// Only the last pass is looked into: what it keeps is what the others kept, and gradients are there by then.
void LedgerTaker::around(const nn::Batch& batch, bool is_last, const std::function<void()>& pass) {
  if (!is_last) {
    pass();
    return;
  }
  is_measured_ = true;
  look_into(batch, pass);
  is_measured_ = false;
}

void LedgerTaker::watch(const nn::Batch& batch, const std::function<void()>& pass) {
  is_measured_ = false;
  look_into(batch, pass);
}

void LedgerTaker::look_into(const nn::Batch& batch, const std::function<void()>& pass) {
  book_.forget_gone();
  book_.enter(Class::kInput, batch.input);
  book_.enter(Class::kInput, batch.target);
  enter(book_, owners_, held_());
  look_around();
  const std::int64_t before = unknown_;
  growth_.clear();
  {
    const Flag in_forward(in_forward_);
    const nn::KeptWatch kept([this](const nn::Module* layer, const at::Tensor& tensor) {
      if (in_forward_) book_.keep(profile::name_of(owners_.model, layer), tensor);
    });
    const nn::CallWatch calls(
        [this](const nn::Module& layer, const at::Tensor& output) { look_at(layer, output); });
    pass();
  }
  if (!is_measured_ || !warm_) return;
  enter(book_, owners_, held_());
  const std::int64_t growth = requested_now(device_) - accounted(book_.sum_up()) - before;
  ledger_.growth = Growth{growth, suspects(growth_, growth)};
}

// Inner layers are shown before those that called them, so that what a layer holds on to is seen first here
// with itself.
void LedgerTaker::look_at(const nn::Module& layer, const at::Tensor& output) {
  if (!in_forward_) return;
  book_.enter(Class::kOutputs, output);
  const std::int64_t before = unknown_;
  look_around();
  growth_.push_back({profile::name_of(owners_.model, &layer), unknown_ - before});
}

void LedgerTaker::look_around() {
  live_ = book_.sum_up();
  live_->memory.allocated = requested_now(device_);
  unknown_ = *unexplained(*live_);
}

void LedgerTaker::end_forward(const at::Tensor& output, const at::Tensor& loss) {
  if (!in_forward_) return;
  in_forward_ = false;
  book_.enter(Class::kOutputs, output);
  book_.enter(Class::kOutputs, loss);
  live_ = measure();
  if (!is_measured_) return;
  ledger_.peak = *live_;
  // Where they are not all there yet.
  if (!warm_) measure_workspaces();
}

Ledger LedgerTaker::live() const {
  if (live_) return *live_;
  Book now(device_);
  enter(now, owners_, held_());
  Ledger ledger = now.sum_up();
  ledger.memory.allocated = requested_now(device_);
  return ledger;
}

Ledger LedgerTaker::measure() const {
  Ledger ledger = book_.sum_up();
  ledger.memory = meter_.read(/*with_driver=*/true);
  ledger[Class::kRounding] = allocated_now(device_).rounding;
  return ledger;
}

// Nobody tells how large they are: giving them back shows it. Not in the midst of a pass, whose peak would
// be without them.
void LedgerTaker::measure_workspaces() {
  const std::int64_t before = requested_now(device_);
  release_workspaces(device_);
  ledger_.peak[Class::kWorkspaces] = before - requested_now(device_);
}

RunLedger LedgerTaker::end() {
  ledger_.allocated_peak = meter_.read(/*with_driver=*/false).allocated_peak;
  if (warm_) measure_workspaces();
  return ledger_;
}

Ledger expected(const Outlook& outlook) {
  Ledger ledger;
  const Owners& owners = outlook.owners;
  ledger[Class::kWeights] = bytes_of(owners.model.named_parameters());
  for (const auto& [name, value] : optim::trained(owners.model.named_parameters())) {
    const auto bytes = static_cast<std::int64_t>(value.nbytes());
    ledger[Class::kGradients] += bytes;
    // Beside those of the pass.
    if (outlook.float32_sums && value.scalar_type() != at::kFloat) {
      ledger[Class::kGradients] += value.numel() * static_cast<std::int64_t>(sizeof(float));
    }
  }
  for (const auto& [name, state] : owners.optimizer.state()) {
    ledger[is_master(name) ? Class::kMasters : Class::kOptimizerStates] +=
        static_cast<std::int64_t>(state.nbytes());
  }
  if (owners.ema != nullptr) ledger[Class::kAverages] = bytes_of(owners.ema->averages());
  if (outlook.flat_buffers.defined()) {
    ledger[Class::kBuffers] = 2 * static_cast<std::int64_t>(outlook.flat_buffers.nbytes());
  }
  Book data(outlook.sample.input.device());
  for (const auto* split : {owners.data.train.get(), owners.data.validation.get()}) {
    if (split == nullptr) continue;
    for (const at::Tensor& tensor : split->held()) data.enter(Class::kDataSet, tensor);
  }
  ledger[Class::kDataSet] = data.sum_up()[Class::kDataSet];
  ledger[Class::kInput] =
      outlook.micro_batch_size *
      static_cast<std::int64_t>(outlook.sample.input.nbytes() + outlook.sample.target.nbytes());
  return ledger;
}

}  // namespace gputrain::profile
