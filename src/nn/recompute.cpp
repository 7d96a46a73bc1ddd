#include "nn/recompute.h"

#include "base/error.h"
#include "base/text.h"
#include "device/generators.h"
#include "device/graph.h"
#include "nn/module.h"
#include "nn/precision.h"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace gputrain::nn {
namespace {

using Storage = c10::StorageImpl;
using WeakStorage = c10::weak_intrusive_ptr<Storage>;

const Storage* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

// A second pass has computed all that is needed of it.
struct Enough {};

// What is kept of a tensor in a graph that is thrown away.
class KeptNothing final : public Kept {
 public:
  at::Tensor get() override { return {}; }
};

// Sets the generators to what they were when a pass began, and back.
class Redrawn {
 public:
  Redrawn(at::Device device, const std::vector<std::uint8_t>& state)
      : device_(device), before_(device::generator_state(device)) {
    device::set_generator_state(device_, state);
  }
  ~Redrawn() { device::set_generator_state(device_, before_); }
  Redrawn(const Redrawn&) = delete;
  Redrawn& operator=(const Redrawn&) = delete;

 private:
  at::Device device_;
  std::vector<std::uint8_t> before_;
};

thread_local int second_passes = 0;  // that this thread is in, one inside the other

class SecondPass {
 public:
  SecondPass() { ++second_passes; }
  ~SecondPass() { --second_passes; }
  SecondPass(const SecondPass&) = delete;
  SecondPass& operator=(const SecondPass&) = delete;
};

// Sets a pointer while it lives.
class Pointing {
 public:
  Pointing(const at::Tensor*& pointer, const at::Tensor& target) : pointer_(pointer) { pointer_ = &target; }
  ~Pointing() { pointer_ = nullptr; }
  Pointing(const Pointing&) = delete;
  Pointing& operator=(const Pointing&) = delete;

 private:
  const at::Tensor*& pointer_;
};

// Whether it is a leaf that is trained, or a view of one, as the transposed weight of a product.
bool is_weight(const at::Tensor& tensor) {
  const at::TensorBase& base = tensor.is_view() ? tensor._base() : tensor;
  return base.is_leaf() && base.requires_grad();
}

// Whether `view` has all elements of `tensor`, in another shape perhaps.
bool is_whole_view(const at::Tensor& view, const at::Tensor& tensor) {
  return storage_of(view) == storage_of(tensor) && view.numel() == tensor.numel() &&
         view.storage_offset() == tensor.storage_offset() && view.scalar_type() == tensor.scalar_type() &&
         tensor.is_non_overlapping_and_dense() && view.is_non_overlapping_and_dense();
}

// `tensor` as such a view.
at::Tensor as_view(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (tensor.sizes().equals(sizes) && tensor.strides().equals(strides)) return tensor;
  return tensor.as_strided(sizes, strides, tensor.storage_offset());
}

class Mode {
 public:
  Mode(Module& module, bool training) : module_(module), before_(module.training()) {
    if (before_ != training) module_.train(training);
  }
  ~Mode() {
    if (before_ != module_.training()) module_.train(before_);
  }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  Module& module_;
  bool before_;
};

}  // namespace

// A pass through a region, and what is left of it for the second one. Tensors that operators save get a slot
// each, numbered in the order of saving, which is the same in both passes.
class RegionPass : public std::enable_shared_from_this<RegionPass> {
 public:
  RegionPass(Region& region, Region::Body body) : region_(region), body_(std::move(body)) {}

  Region::Tensors run(const Region::Tensors& inputs);
  at::Tensor get(std::size_t number);
  at::Tensor remember(const at::Tensor& input, const std::function<Remembered()>& first,
                      const std::function<at::Tensor(const std::vector<at::Tensor>&)>& again);

  bool is_selective() const { return region_.how_ == Recompute::kSelective; }

  static thread_local RegionPass* current;

 private:
  struct Input {
    std::unique_ptr<Kept> kept;
    bool requires_grad;
  };
  struct InUse {
    std::unique_ptr<Kept> what;
    std::size_t uses;  // by slots, and by calls until the second pass
  };
  struct Slot {
    std::optional<WeakStorage> storage;  // until the first pass has ended
    std::int64_t version = 0;
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset = 0;
    at::ScalarType type = at::kFloat;
    bool is_dense = true;
    std::optional<std::size_t> kept;  // in kept_, where it is
    at::Tensor again;                 // from the second pass until backward has taken it
    std::int64_t again_version = 0;

    std::int64_t numel() const { return c10::multiply_integers(sizes); }
  };
  struct Call {  // of a layer that remembers
    std::size_t first_slot, end_slot;
    std::vector<std::int64_t> input_strides;
    std::vector<at::Tensor> memo;  // until the first pass has ended
    std::vector<std::int64_t> versions;
    bool requires_grad;
    std::vector<std::size_t> kept;  // of the memo; empty: it is of no use
  };

  class Handle;
  class Scope;

  void give_up(std::size_t kept);
  void release(std::size_t number);
  void note_inputs(const Region::Tensors& inputs);
  std::unique_ptr<Kept> save(const at::Tensor& tensor);
  std::unique_ptr<Kept> save_new(const at::Tensor& tensor);
  void save_again(const at::Tensor& tensor);
  static void fill(Slot& slot, const at::Tensor& tensor);
  void finish(const Region::Tensors& inputs, const Region::Tensors& outputs);
  void note_draws();
  void run_again();
  void stop_when_enough() const;

  Region& region_;
  Region::Body body_;
  bool training_ = false;
  at::Device device_ = at::kCPU;
  std::optional<at::ScalarType> autocast_;
  std::vector<std::uint8_t> generators_;  // at the beginning; empty: nothing was drawn
  std::vector<Input> inputs_;
  std::vector<const Storage*> given_;  // in this pass: inputs, and what layers have remembered
  std::vector<Slot> slots_;
  std::vector<Call> calls_;
  std::vector<InUse> kept_;
  std::size_t needed_ = 0;  // slots that a second pass has to fill, from the first
  std::size_t next_ = 0;    // slot
  std::size_t next_call_ = 0;
  const at::Tensor* call_input_ = nullptr;  // of the layer being called that remembers
  bool is_second_ = false;
};

thread_local RegionPass* RegionPass::current = nullptr;

class RegionPass::Handle final : public Kept {
 public:
  Handle(std::shared_ptr<RegionPass> pass, std::size_t number) : pass_(std::move(pass)), number_(number) {}
  ~Handle() override { pass_->release(number_); }
  at::Tensor get() override { return pass_->get(number_); }

 private:
  std::shared_ptr<RegionPass> pass_;
  std::size_t number_;
};

// This thread is in the pass.
class RegionPass::Scope {
 public:
  explicit Scope(RegionPass& pass)
      : outer_(std::exchange(current, &pass)),
        saved_([&pass](const at::Tensor& tensor) { return pass.save(tensor); }) {}
  ~Scope() { current = outer_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  RegionPass* outer_;
  SavedTensors saved_;
};

Region::Tensors RegionPass::run(const Region::Tensors& inputs) {
  TORCH_CHECK(!inputs.empty(), "activation_checkpointing: ", region_.name_, " has no input");
  training_ = region_.owner_.training();
  device_ = inputs.front().device();
  autocast_ = autocast_type(device_.type());
  const bool is_recorded = device::is_recording(device_);
  if (is_recorded && region_.draws_) {
    throw Error(ExitCode::kUsage,
                concat("activation_checkpointing: ", region_.name_,
                       " draws random numbers, and a pass that is recorded cannot draw them a second time"));
  }
  if (!is_recorded) generators_ = device::generator_state(device_);
  std::vector<std::int64_t> versions;
  for (const at::Tensor& input : inputs) {
    inputs_.push_back({keep_for_backward(input), input.requires_grad()});
    versions.push_back(input._version());
  }
  note_inputs(inputs);
  Region::Tensors outputs;
  {
    const Scope scope(*this);
    outputs = body_(inputs);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]._version() == versions[i]) continue;
    throw Error(ExitCode::kUsage, concat("activation_checkpointing: ", region_.name_,
                                         " changes its input in place, so that it cannot be computed again; "
                                         "leave it out, or begin with a layer that does not"));
  }
  if (!is_recorded) note_draws();
  finish(inputs, outputs);
  return outputs;
}

void RegionPass::note_inputs(const Region::Tensors& inputs) {
  given_.clear();
  for (const at::Tensor& input : inputs) given_.push_back(storage_of(input));
}

void RegionPass::note_draws() {
  if (device::generator_state(device_) == generators_) {
    generators_.clear();
  } else {
    region_.draws_ = true;
  }
}

std::unique_ptr<Kept> RegionPass::save(const at::Tensor& tensor) {
  const Storage* storage = storage_of(tensor);
  const bool is_given = std::find(given_.begin(), given_.end(), storage) != given_.end();
  // Weights stay where they are; so does the little that a layer that remembers saves besides its input.
  const bool stays =
      call_input_ != nullptr ? !is_whole_view(tensor, *call_input_) : is_weight(tensor) && !is_given;
  if (stays) return is_second_ ? std::make_unique<KeptNothing>() : nullptr;
  if (!is_second_) return save_new(tensor);
  if (call_input_ == nullptr) save_again(tensor);  // remember() has filled the slots of the others
  return std::make_unique<KeptNothing>();
}

std::unique_ptr<Kept> RegionPass::save_new(const at::Tensor& tensor) {
  Slot slot;
  slot.storage = tensor.storage().getWeakStorageImpl();
  slot.version = tensor._version();
  slot.sizes = tensor.sizes().vec();
  slot.strides = tensor.strides().vec();
  slot.offset = tensor.storage_offset();
  slot.type = tensor.scalar_type();
  slot.is_dense = tensor.is_non_overlapping_and_dense();
  slots_.push_back(std::move(slot));
  return std::make_unique<Handle>(shared_from_this(), slots_.size() - 1);
}

void RegionPass::save_again(const at::Tensor& tensor) {
  TORCH_CHECK(next_ < slots_.size(), "activation_checkpointing: ", region_.name_,
              " saves more tensors when it is computed again: it does not compute the same each time");
  Slot& slot = slots_[next_++];
  TORCH_CHECK(tensor.scalar_type() == slot.type && tensor.sizes().equals(slot.sizes),
              "activation_checkpointing: ", region_.name_, " computed again gives a tensor of ",
              tensor.toString(), " ", tensor.sizes(), " where it gave ", slot.type, " ",
              at::IntArrayRef(slot.sizes), ": it does not compute the same each time");
  fill(slot, tensor);
  stop_when_enough();
}

void RegionPass::fill(Slot& slot, const at::Tensor& tensor) {
  if (slot.kept) return;
  slot.again = tensor.detach();
  slot.again_version = slot.again._version();
}

void RegionPass::stop_when_enough() const {
  if (next_ >= needed_) throw Enough();
}

// What backward finds without a second pass: inputs, outputs and what layers remember.
void RegionPass::finish(const Region::Tensors& inputs, const Region::Tensors& outputs) {
  struct Found {
    at::Tensor tensor;
    std::optional<std::size_t> kept;
  };
  std::vector<Found> found;
  const auto add = [&](const at::Tensor& tensor) { found.push_back({tensor, {}}); };
  for (const at::Tensor& input : inputs) add(input);
  for (const at::Tensor& output : outputs) add(output);
  for (const Call& call : calls_) {
    for (const at::Tensor& tensor : call.memo) add(tensor);
  }
  const auto keep = [&](Found& one) {
    if (!one.kept) {
      kept_.push_back({keep_for_backward(one.tensor), 0});
      one.kept = kept_.size() - 1;
    }
    ++kept_[*one.kept].uses;
    return *one.kept;
  };
  for (std::size_t number = 0; number < slots_.size(); ++number) {
    Slot& slot = slots_[number];
    const auto storage = slot.storage->lock();
    slot.storage.reset();
    const auto same = std::find_if(found.begin(), found.end(), [&](const Found& one) {
      return storage && storage_of(one.tensor) == storage.get() && one.tensor._version() == slot.version &&
             one.tensor.numel() == slot.numel() && one.tensor.storage_offset() == slot.offset &&
             one.tensor.scalar_type() == slot.type && slot.is_dense &&
             one.tensor.is_non_overlapping_and_dense();
    });
    if (same != found.end()) {
      slot.kept = keep(*same);
    } else {
      needed_ = number + 1;
    }
  }
  for (Call& call : calls_) {
    bool is_as_it_was = call.end_slot < needed_;  // else the second pass ends before its result is used
    for (std::size_t i = 0; i < call.memo.size(); ++i) {
      is_as_it_was = is_as_it_was && call.memo[i]._version() == call.versions[i];
    }
    for (const at::Tensor& tensor : call.memo) {
      if (!is_as_it_was) break;
      call.kept.push_back(keep(*std::find_if(found.begin(), found.end(),
                                             [&](const Found& one) { return one.tensor.is_same(tensor); })));
    }
    call.memo.clear();
  }
  if (needed_ == 0) inputs_.clear();
}

void RegionPass::give_up(std::size_t kept) {
  if (--kept_[kept].uses == 0) kept_[kept].what.reset();
}

// Backward has taken what is in the slot.
void RegionPass::release(std::size_t number) {
  slots_[number].again.reset();
  if (slots_[number].kept) give_up(*slots_[number].kept);
}

at::Tensor RegionPass::get(std::size_t number) {
  Slot& slot = slots_[number];
  if (slot.kept) return as_view(kept_[*slot.kept].what->get(), slot.sizes, slot.strides);
  if (!slot.again.defined()) run_again();
  TORCH_CHECK(slot.again._version() == slot.again_version, "activation_checkpointing: ", region_.name_,
              " changes in place what the backward pass needs");
  return slot.again;
}

void RegionPass::run_again() {
  std::optional<Redrawn> redrawn;
  if (!generators_.empty()) redrawn.emplace(device_, generators_);
  const Mode mode(region_.owner_, training_);
  const Autocast autocast(device_.type(), autocast_);
  const c10::AutoGradMode with_grad(true);
  Region::Tensors inputs;
  for (Input& input : inputs_) {
    inputs.push_back(input.kept->get().detach().set_requires_grad(input.requires_grad));
  }
  note_inputs(inputs);
  is_second_ = true;
  next_ = 0;
  next_call_ = 0;
  try {
    const SecondPass second;
    const Scope scope(*this);
    body_(inputs);
  } catch (const Enough&) {
    // as it should be
  }
  TORCH_CHECK(next_ >= needed_, "activation_checkpointing: ", region_.name_,
              " saves fewer tensors when it is computed again: it does not compute the same each time");
  for (Call& call : calls_) {
    for (const std::size_t kept : call.kept) give_up(kept);
    call.kept.clear();
  }
  inputs_.clear();
}

at::Tensor RegionPass::remember(const at::Tensor& input, const std::function<Remembered()>& first,
                                const std::function<at::Tensor(const std::vector<at::Tensor>&)>& again) {
  if (call_input_ != nullptr) return first().output;  // a layer inside of one that remembers
  if (!is_second_) {
    const std::size_t first_slot = slots_.size();
    Remembered made;
    {
      const Pointing calling(call_input_, input);
      made = first();
    }
    std::vector<std::int64_t> versions;
    for (at::Tensor& tensor : made.memo) {
      tensor = tensor.detach();  // its history leads back to this pass
      versions.push_back(tensor._version());
    }
    calls_.push_back({first_slot,
                      slots_.size(),
                      input.strides().vec(),
                      made.memo,
                      versions,
                      made.output.requires_grad(),
                      {}});
    return made.output;
  }
  TORCH_CHECK(next_call_ < calls_.size() && calls_[next_call_].first_slot == next_,
              "activation_checkpointing: ", region_.name_, " calls other layers when it is computed again");
  const Call& call = calls_[next_call_++];
  TORCH_CHECK(input.strides().equals(call.input_strides), "activation_checkpointing: ", region_.name_,
              " has its values in another order of memory when it is computed again");
  for (; next_ < call.end_slot; ++next_) {
    fill(slots_[next_], as_view(input.detach(), slots_[next_].sizes, slots_[next_].strides));
  }
  stop_when_enough();
  const Pointing calling(call_input_, input);
  if (call.kept.empty()) return first().output;
  std::vector<at::Tensor> memo;
  for (const std::size_t kept : call.kept) memo.push_back(kept_[kept].what->get());
  at::Tensor output = again(memo);
  if (output.is_leaf()) output = output.detach().set_requires_grad(call.requires_grad);
  given_.push_back(storage_of(output));
  return output;
}

Region::Region(std::string name, Module& owner, Recompute how)
    : name_(std::move(name)), owner_(owner), how_(how) {}

Region::Tensors Region::operator()(const Body& body, const Tensors& inputs) {
  if (!c10::GradMode::is_enabled()) return body(inputs);
  return std::make_shared<RegionPass>(*this, body)->run(inputs);
}

at::Tensor Region::operator()(const std::function<at::Tensor(const at::Tensor&)>& body,
                              const at::Tensor& input) {
  return (*this)([body](const Tensors& inputs) { return Tensors{body(inputs.front())}; }, Tensors{input})
      .front();
}

void Blocks::add(std::string name, Unit unit) {
  units_.emplace_back(std::move(name), std::move(unit));
}

at::Tensor Blocks::operator()(at::Tensor input) {
  const auto run = [this](std::size_t first, std::size_t end, at::Tensor x) {
    for (std::size_t i = first; i < end; ++i) x = units_[i].second(x);
    return x;
  };
  if (regions_.empty()) return run(0, units_.size(), std::move(input));
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const std::size_t first = i * static_cast<std::size_t>(every_);
    const std::size_t end = std::min(first + static_cast<std::size_t>(every_), units_.size());
    input = (*regions_[i])([run, first, end](const at::Tensor& x) { return run(first, end, x); }, input);
  }
  return input;
}

void Blocks::recompute(Module& owner, Recompute how, std::int64_t every) {
  every_ = every;
  regions_.clear();
  const auto count = static_cast<std::int64_t>(units_.size());
  for (std::int64_t first = 0; first < count; first += every) {
    const std::string& last = units_[static_cast<std::size_t>(std::min(first + every, count) - 1)].first;
    const std::string& name = units_[static_cast<std::size_t>(first)].first;
    regions_.push_back(std::make_unique<Region>(name == last ? name : name + " to " + last, owner, how));
  }
}

at::Tensor remember(const at::Tensor& input, bool is_dear, const std::function<Remembered()>& first,
                    const std::function<at::Tensor(const std::vector<at::Tensor>& memo)>& again) {
  RegionPass* pass = RegionPass::current;
  if (pass == nullptr || (is_dear && !pass->is_selective())) return first().output;
  return pass->remember(input, first, again);
}

bool is_recomputing() {
  return second_passes > 0;
}

}  // namespace gputrain::nn
