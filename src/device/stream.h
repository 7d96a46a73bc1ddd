#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <utility>
#include <vector>

namespace gputrain::device {

struct ScalarSlot;
struct ScalarPool;
struct ClockEvent;
struct ClockPool;

// Values on their way to the host. Move-only; dropping it gives its buffer back.
class PendingScalars {
 public:
  PendingScalars();  // holds nothing: valid() is false
  PendingScalars(PendingScalars&&) noexcept;
  PendingScalars& operator=(PendingScalars&&) noexcept;
  ~PendingScalars();

  bool valid() const { return slot_ != nullptr; }
  bool ready() const;  // wait() would return at once

  // The values, in order. Blocks until they have arrived; may be called again.
  std::vector<double> wait() const;

 private:
  friend class AsyncScalars;
  PendingScalars(std::shared_ptr<ScalarPool> pool, std::unique_ptr<ScalarSlot> slot);
  void give_back();

  std::shared_ptr<ScalarPool> pool_;
  std::unique_ptr<ScalarSlot> slot_;
};

// Reads small device tensors without making the host wait: each copy goes to pinned memory on the current
// stream, followed by an event. Buffers and events are reused; as many exist as copies were pending at once.
// On the CPU the copy is done at once. Used by one thread.
class AsyncScalars {
 public:
  explicit AsyncScalars(at::Device device);

  // values: float32 or float64, any shape, on the device. What the tensor holds when the stream gets there
  // counts; it may be freed or changed (on the same stream) at once.
  PendingScalars copy(const at::Tensor& values);

 private:
  std::shared_ptr<ScalarPool> pool_;
};

// A point in the device's work. Copyable; its event is reused when the last copy is gone.
class Mark {
 public:
  Mark() = default;
  bool valid() const { return event_ != nullptr; }
  bool reached() const;  // the device has got there
  void wait() const;

 private:
  friend class StepClock;
  explicit Mark(std::shared_ptr<ClockEvent> event) : event_(std::move(event)) {}
  std::shared_ptr<ClockEvent> event_;
};

// Device time between points of the current stream, read after the fact. On the CPU: steady_clock.
// Used by one thread.
class StepClock {
 public:
  explicit StepClock(at::Device device);

  Mark record();

  // Time the device took from one mark to the other, negative when `to` came first. Waits for both.
  double seconds_between(const Mark& from, const Mark& to) const;

 private:
  std::shared_ptr<ClockPool> pool_;
};

// Waits until the device has done all that was given to it. Nothing on the CPU.
void synchronize(at::Device device);

}  // namespace gputrain::device
