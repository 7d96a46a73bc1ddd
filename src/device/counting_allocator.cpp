#include "device/counting_allocator.h"

#include "device/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace gputrain::device {
namespace {

// Sizes of the live blocks, in several tables so that threads seldom wait for each other. The size stands
// here and not before the block because a raw deleter may be given any block, also one that was made before
// this.
class SizeTable {
 public:
  void insert(void* block, std::size_t bytes) {
    Shard& shard = shard_of(block);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    shard.bytes[block] = bytes;
  }

  // The size of the block, which is forgotten; 0 for one that was never inserted.
  std::size_t remove(void* block) {
    Shard& shard = shard_of(block);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    const auto found = shard.bytes.find(block);
    if (found == shard.bytes.end()) return 0;
    const std::size_t bytes = found->second;
    shard.bytes.erase(found);
    return bytes;
  }

 private:
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<void*, std::size_t> bytes;
  };

  Shard& shard_of(void* block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    return shards_[(address >> 6 ^ address >> 12) % shards_.size()];
  }

  std::array<Shard, 16> shards_;
};

class CountingAllocator final : public c10::Allocator {
 public:
  // `inner` hands out blocks whose context is the block itself: it has a raw deleter.
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    const auto wanted = static_cast<std::int64_t>(bytes);
    if (now_.load() + wanted > unasked_.load()) ask_for(wanted);
    c10::DataPtr block = inner_->allocate(bytes);
    if (block.get() == nullptr) return block;
    sizes_.insert(block.get(), bytes);
    if (!block.compare_exchange_deleter(inner_->raw_deleter(), &CountingAllocator::free)) {
      sizes_.remove(block.get());
      return block;
    }
    add(static_cast<std::int64_t>(bytes));
    return block;
  }

  c10::DeleterFnPtr raw_deleter() const override { return &CountingAllocator::free; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

  CpuCounts counts() const { return {now_.load(), peak_.load()}; }
  void reset_peak() { peak_.store(now_.load()); }

  void set_cap(std::function<std::int64_t()> cap) {
    const std::lock_guard<std::mutex> lock(cap_mutex_);
    cap_ = std::move(cap);
    unasked_.store(cap_ ? 0 : kNoCap);
  }

  static void free(void* block);

 private:
  static constexpr std::int64_t kNoCap = std::numeric_limits<std::int64_t>::max();

  // Asking takes microseconds: not for each of many small blocks.
  static constexpr std::int64_t kAskEvery = 4 << 20;

  void ask_for(std::int64_t bytes) {
    const std::lock_guard<std::mutex> lock(cap_mutex_);
    if (!cap_) return;
    const std::int64_t now = now_.load();
    const std::int64_t cap = cap_();
    // In the words of LibTorch's allocators, so that it is told as their errors are.
    TORCH_CHECK(now + bytes <= cap, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ",
                bytes, " bytes. memory.limit leaves ", cap, " bytes to tensors. Of the allocated memory ",
                now, " bytes are held by tensors.");
    unasked_.store(std::min(cap, now + bytes + kAskEvery));
  }

  void add(std::int64_t bytes) {
    const std::int64_t now = now_.fetch_add(bytes) + bytes;
    std::int64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }

  c10::Allocator* inner_;
  SizeTable sizes_;
  std::atomic<std::int64_t> now_{0};
  std::atomic<std::int64_t> peak_{0};
  std::mutex cap_mutex_;
  std::function<std::int64_t()> cap_;          // empty: there is none
  std::atomic<std::int64_t> unasked_{kNoCap};  // up to here nobody needs to be asked
};

// Never destroyed: tensors with static lifetime are freed after everything else.
std::atomic<CountingAllocator*> installed{nullptr};

void CountingAllocator::free(void* block) {
  CountingAllocator& self = *installed.load();
  // First out of the table: once freed, the address may be handed to another thread.
  self.now_.fetch_sub(static_cast<std::int64_t>(self.sizes_.remove(block)));
  self.inner_->raw_deleter()(block);
}

}  // namespace

void install_counting_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::Allocator* inner = c10::GetCPUAllocator();
    TORCH_CHECK(inner->raw_deleter() != nullptr, "the CPU allocator in force cannot be wrapped");
    installed.store(new CountingAllocator(inner));
    c10::SetCPUAllocator(installed.load());
  });
}

CpuCounts cpu_counts() {
  const CountingAllocator* allocator = installed.load();
  return allocator == nullptr ? CpuCounts{} : allocator->counts();
}

void cap_cpu_memory(std::function<std::int64_t()> cap) {
  if (CountingAllocator* allocator = installed.load()) allocator->set_cap(std::move(cap));
}

void reset_cpu_peak() {
  if (CountingAllocator* allocator = installed.load()) allocator->reset_peak();
}

}  // namespace gputrain::device
