#include "kernels/cuda_check.h"
#include "kernels/launch.h"
#include "kernels/optimizer_step_math.h"
#include "kernels/optimizer_step_table.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace gputrain::kernels {
namespace {

constexpr int kVector = 4;

template <class T>
struct alignas(kVector * sizeof(T)) Vector {
  T at[kVector];
};

template <class T>
__device__ Vector<T> load(const void* array, std::int64_t first) {
  __builtin_assume(__isGlobal(array));
  return *reinterpret_cast<const Vector<T>*>(static_cast<const T*>(array) + first);
}

template <class T>
__device__ void store(void* array, std::int64_t first, const Vector<T>& values) {
  __builtin_assume(__isGlobal(array));
  *reinterpret_cast<Vector<T>*>(static_cast<T*>(array) + first) = values;
}

// Elements first .. last - 1, whole vectors of them. Gradient, Weight: float, or std::uint16_t for either
// 16-bit type; which one it is decides a branch behind the loads, so that all of them are under way together.
template <class Gradient, class Weight, class Rule>
__device__ void step_vectors(const Rule& rule, const StepNumbers& n, const TableTensor& tensor,
                             std::int64_t first, std::int64_t last) {
  constexpr bool kRandom = std::is_same_v<Weight, std::uint16_t>;
  const OptimizerTensor& t = tensor.memory;
  void* const weights = kRandom ? t.low : t.weight;
  for (std::int64_t i = first + threadIdx.x * kVector; i < last; i += kBlockThreads * kVector) {
    Vector<float> state1{};
    Vector<float> state2{};
    if constexpr (Rule::kStates >= 1) state1 = load<float>(t.state1, i);
    if constexpr (Rule::kStates >= 2) state2 = load<float>(t.state2, i);
    Vector<Weight> weight = load<Weight>(weights, i);
    const Vector<Gradient> gradient = load<Gradient>(t.gradient, i);
    Vector<std::uint16_t> low;
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      StepElement e;
      e.weight = widened(weight.at[k], t.low_type);
      e.gradient = rounded::mul(widened(gradient.at[k], t.gradient_type), n.gradient_scale);
      e.state1 = state1.at[k];
      e.state2 = state2.at[k];
      rule.update(e, n);
      state1.at[k] = e.state1;
      state2.at[k] = e.state2;
      if constexpr (kRandom) {
        const auto number = static_cast<std::uint64_t>(tensor.first_element + i + k);
        weight.at[k] = rounded_randomly_to(t.low_type, e.weight, random_bits(n.random_seed, number));
      } else {
        weight.at[k] = e.weight;
        if (t.low != nullptr) low.at[k] = rounded_to(t.low_type, e.weight);
      }
    }
    if constexpr (Rule::kStates >= 1) store(t.state1, i, state1);
    if constexpr (Rule::kStates >= 2) store(t.state2, i, state2);
    store(weights, i, weight);
    if constexpr (!kRandom) {
      if (t.low != nullptr) store(t.low, i, low);
    }
  }
}

template <class Rule>
__device__ void step_vectors(const Rule& rule, const StepNumbers& n, const TableTensor& tensor,
                             std::int64_t first, std::int64_t last) {
  const bool wide_gradient = tensor.memory.gradient_type == Element::kFloat32;
  const bool wide_weight = tensor.memory.weight != nullptr;
  if (wide_gradient && wide_weight) return step_vectors<float, float>(rule, n, tensor, first, last);
  if (wide_gradient) return step_vectors<float, std::uint16_t>(rule, n, tensor, first, last);
  if (wide_weight) return step_vectors<std::uint16_t, float>(rule, n, tensor, first, last);
  step_vectors<std::uint16_t, std::uint16_t>(rule, n, tensor, first, last);
}

// One block per chunk. Bytes moved per element with float32 gradients and weights: sgd 12, with momentum 20,
// lion 20, adamw 28; 2 more for a 16-bit copy, 2 fewer for a 16-bit gradient. On an H200 3.8 to 4.1 TB/s over
// the shapes of ResNet-50 and GPT-2 124M, 94 to 97 % of a copy (docs/results.md).
template <class Rule>
__global__ void __launch_bounds__(kBlockThreads)
    step_kernel(Rule rule, StepScalars scalars, const TableTensor* tensors, const TableChunk* chunks) {
  if (*scalars.apply == 0) return;
  const TableChunk chunk = chunks[blockIdx.x];
  // A copy: what lies in memory would be read again after every store.
  const TableTensor tensor = tensors[chunk.tensor];
  __shared__ StepNumbers shared_numbers;
  if (threadIdx.x == 0) shared_numbers = step_numbers(rule, scalars, tensor.memory);
  __syncthreads();
  const StepNumbers numbers = shared_numbers;

  const std::int64_t end = chunk.first + kChunkElements;
  const std::int64_t last = end < tensor.memory.count ? end : tensor.memory.count;
  std::int64_t first = chunk.first;
  if (tensor.whole_vectors) {
    const std::int64_t whole = last - last % kVector;
    step_vectors(rule, numbers, tensor, first, whole);
    first = whole;
  }
  for (std::int64_t i = first + threadIdx.x; i < last; i += kBlockThreads)
    step_element(rule, numbers, tensor, i);
}

struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct FreePinned {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using DeviceMemory = std::unique_ptr<void, FreeDevice>;
using PinnedMemory = std::unique_ptr<void, FreePinned>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

DeviceMemory device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc of the optimizer's table");
  return DeviceMemory(memory);
}

PinnedMemory pinned_memory(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMallocHost(&memory, bytes), "cudaMallocHost of the optimizer's table");
  return PinnedMemory(memory);
}

Event new_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return Event(event);
}

// Where a table is written before it is copied to the device.
struct Staging {
  PinnedMemory memory;
  Event copied = new_event();
};

class CudaSteps final : public OptimizerSteps {
 public:
  void set(TableLayout layout, Stream stream) override {
    chunks_ = 0;  // nothing to launch, should the copy fail
    if (layout.chunks.empty()) return;
    const std::size_t tensor_bytes = layout.tensors.size() * sizeof(TableTensor);
    const std::size_t chunk_bytes = layout.chunks.size() * sizeof(TableChunk);
    reserve(tensor_bytes + chunk_bytes, stream);
    Staging& staging = staging_[next_staging_];
    next_staging_ = 1 - next_staging_;
    check_cuda(cudaEventSynchronize(staging.copied.get()), "copy of the optimizer's table");
    auto* const bytes = static_cast<char*>(staging.memory.get());
    std::memcpy(bytes, layout.tensors.data(), tensor_bytes);
    std::memcpy(bytes + tensor_bytes, layout.chunks.data(), chunk_bytes);
    check_cuda(
        cudaMemcpyAsync(table_.get(), bytes, tensor_bytes + chunk_bytes, cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync of the optimizer's table");
    check_cuda(cudaEventRecord(staging.copied.get(), stream), "cudaEventRecord");
    tensor_bytes_ = tensor_bytes;
    chunks_ = layout.chunks.size();
  }

  void sgd(const SgdRule& rule, const StepScalars& scalars, Stream stream) override {
    if (rule.momentum == 0) return launch(SgdMath<false>(rule), scalars, stream);
    launch(SgdMath<true>(rule), scalars, stream);
  }
  void adamw(const AdamWRule& rule, const StepScalars& scalars, Stream stream) override {
    launch(AdamWMath(rule), scalars, stream);
  }
  void lion(const LionRule& rule, const StepScalars& scalars, Stream stream) override {
    launch(LionMath(rule), scalars, stream);
  }

 private:
  void reserve(std::size_t bytes, Stream stream) {
    if (bytes <= capacity_) return;
    check_cuda(cudaStreamSynchronize(stream), "work on the optimizer's table");
    capacity_ = 0;
    table_ = device_memory(bytes);
    for (Staging& staging : staging_) staging.memory = pinned_memory(bytes);
    capacity_ = bytes;
  }

  template <class Rule>
  void launch(const Rule& rule, const StepScalars& scalars, Stream stream) const {
    if (chunks_ == 0) return;
    const auto* const tensors = static_cast<const TableTensor*>(table_.get());
    const auto* const chunks =
        reinterpret_cast<const TableChunk*>(static_cast<const char*>(table_.get()) + tensor_bytes_);
    // A grid of kMaxBlocks would be 1.7e13 elements.
    step_kernel<<<static_cast<unsigned>(chunks_), kBlockThreads, 0, stream>>>(rule, scalars, tensors, chunks);
    check_launch("launch of the optimizer's step");
  }

  DeviceMemory table_;  // tensors, then chunks
  Staging staging_[2];
  int next_staging_ = 0;
  std::size_t capacity_ = 0;
  std::size_t tensor_bytes_ = 0;
  std::size_t chunks_ = 0;
};

}  // namespace

std::unique_ptr<OptimizerSteps> optimizer_steps_cuda() {
  return std::make_unique<CudaSteps>();
}

}  // namespace gputrain::kernels
