#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

// The few functions of the CUDA runtime that tests of kernels call, declared weak and without CUDA's headers:
// in a build without CUDA they are null, and the same test files compile there.
extern "C" {
__attribute__((weak)) int cudaGetDeviceCount(int* count);
__attribute__((weak)) int cudaMalloc(void** memory, std::size_t bytes);
__attribute__((weak)) int cudaFree(void* memory);
__attribute__((weak)) int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);
}

namespace gputrain::test {

// Whether this build has CUDA and this machine a GPU it can use.
inline bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount != nullptr && cudaGetDeviceCount(&count) == 0 && count > 0;
}

// Elements in the GPU's memory; copies wait for the default stream.
template <class T>
class GpuArray {
 public:
  explicit GpuArray(const std::vector<T>& values) : size_(values.size()) {
    check(cudaMalloc(&memory_, (size_ + 1) * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(memory_, values.data(), size_ * sizeof(T), kFromHost), "cudaMemcpy");
  }
  ~GpuArray() { cudaFree(memory_); }
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;

  T* data() { return static_cast<T*>(memory_); }

  std::vector<T> read() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), memory_, size_ * sizeof(T), kToHost), "cudaMemcpy");
    return values;
  }

 private:
  static constexpr int kFromHost = 1;
  static constexpr int kToHost = 2;

  static void check(int status, const char* what) {
    if (status != 0) throw std::runtime_error(what + (" failed with status " + std::to_string(status)));
  }

  void* memory_ = nullptr;
  std::size_t size_;
};

}  // namespace gputrain::test
