#include "device/stream.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <optional>

namespace gputrain::device {
namespace {

using SteadyClock = std::chrono::steady_clock;

c10::Stream working_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

struct ScalarSlot {
  at::Tensor host;                  // pinned, of the shape that was copied
  std::optional<c10::Event> event;  // none on the CPU, where the copy is done at once
};

struct ScalarPool {
  explicit ScalarPool(at::Device where) : device(where) {}

  std::unique_ptr<ScalarSlot> take(const at::Tensor& like) {
    for (auto& slot : free) {
      if (slot->host.scalar_type() != like.scalar_type() || slot->host.sizes() != like.sizes()) continue;
      std::unique_ptr<ScalarSlot> taken = std::move(slot);
      slot = std::move(free.back());
      free.pop_back();
      return taken;
    }
    auto slot = std::make_unique<ScalarSlot>();
    const bool pinned = !device.is_cpu();
    slot->host = at::empty(like.sizes(), like.options().device(at::kCPU).pinned_memory(pinned));
    if (pinned) slot->event.emplace(device.type());
    return slot;
  }

  at::Device device;
  std::vector<std::unique_ptr<ScalarSlot>> free;
};

PendingScalars::PendingScalars() = default;
PendingScalars::PendingScalars(PendingScalars&&) noexcept = default;

PendingScalars::PendingScalars(std::shared_ptr<ScalarPool> pool, std::unique_ptr<ScalarSlot> slot)
    : pool_(std::move(pool)), slot_(std::move(slot)) {}

PendingScalars& PendingScalars::operator=(PendingScalars&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  pool_ = std::move(other.pool_);
  slot_ = std::move(other.slot_);
  return *this;
}

PendingScalars::~PendingScalars() {
  give_back();
}

// A buffer whose copy is still on its way may be reused: the next copy into it is behind this one on the
// stream.
void PendingScalars::give_back() {
  if (slot_ != nullptr) pool_->free.push_back(std::move(slot_));
}

bool PendingScalars::ready() const {
  return !slot_->event || slot_->event->query();
}

std::vector<double> PendingScalars::wait() const {
  if (slot_->event) slot_->event->synchronize();
  const at::Tensor host =
      slot_->host.scalar_type() == at::kDouble ? slot_->host : slot_->host.to(at::kDouble);
  const auto* data = host.const_data_ptr<double>();
  return {data, data + host.numel()};
}

AsyncScalars::AsyncScalars(at::Device device) : pool_(std::make_shared<ScalarPool>(device)) {}

PendingScalars AsyncScalars::copy(const at::Tensor& values) {
  TORCH_CHECK(values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble,
              "AsyncScalars: float32 or float64 expected, got ", values.scalar_type());
  TORCH_CHECK(values.device() == pool_->device, "AsyncScalars for ", pool_->device, " got a tensor on ",
              values.device());
  const at::Tensor source = values.detach();
  std::unique_ptr<ScalarSlot> slot = pool_->take(source);
  slot->host.copy_(source, /*non_blocking=*/true);
  if (slot->event) slot->event->record(working_stream(pool_->device));
  return PendingScalars(pool_, std::move(slot));
}

struct ClockEvent {
  std::optional<c10::Event> event;
  SteadyClock::time_point time{};  // on the CPU, in place of the event
};

struct ClockPool {
  explicit ClockPool(at::Device where) : device(where) {}

  std::unique_ptr<ClockEvent> take() {
    if (!free.empty()) {
      std::unique_ptr<ClockEvent> taken = std::move(free.back());
      free.pop_back();
      return taken;
    }
    auto event = std::make_unique<ClockEvent>();
    // BACKEND_DEFAULT is the flag under which CUDA events keep the time.
    if (!device.is_cpu()) event->event.emplace(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    return event;
  }

  at::Device device;
  std::vector<std::unique_ptr<ClockEvent>> free;
};

bool Mark::reached() const {
  return !event_->event || event_->event->query();
}

void Mark::wait() const {
  if (event_->event) event_->event->synchronize();
}

StepClock::StepClock(at::Device device) : pool_(std::make_shared<ClockPool>(device)) {}

Mark StepClock::record() {
  std::unique_ptr<ClockEvent> event = pool_->take();
  if (event->event)
    event->event->record(working_stream(pool_->device));
  else
    event->time = SteadyClock::now();
  const auto give_back = [pool = pool_](ClockEvent* used) { pool->free.emplace_back(used); };
  return Mark(std::shared_ptr<ClockEvent>(event.release(), give_back));
}

double StepClock::seconds_between(const Mark& from, const Mark& to) const {
  from.wait();
  to.wait();
  if (from.event_->event) return from.event_->event->elapsedTime(*to.event_->event) * 1e-3;
  return std::chrono::duration<double>(to.event_->time - from.event_->time).count();
}

void synchronize(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace gputrain::device
