#include "device/probe.h"

#include "base/text.h"
#include "device/device.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/matmul.h>
#include <c10/util/Exception.h>

#include <exception>

namespace gputrain::device {
namespace {

// Sums of up to 64 products of values of magnitude 1 in float32: rounding stays below 1e-5, TF32 would not.
constexpr double kTolerance = 1e-4;

class WithoutTf32 {
 public:
  WithoutTf32()
      : matmul_(at::globalContext().allowTF32CuBLAS()), convolution_(at::globalContext().allowTF32CuDNN()) {
    set(false, false);
  }
  ~WithoutTf32() { set(matmul_, convolution_); }
  WithoutTf32(const WithoutTf32&) = delete;
  WithoutTf32& operator=(const WithoutTf32&) = delete;

 private:
  static void set(bool matmul, bool convolution) {
    at::globalContext().setAllowTF32CuBLAS(matmul);
    at::globalContext().setAllowTF32CuDNN(convolution);
  }
  bool matmul_;
  bool convolution_;
};

// Values in [-1, 1] that look irregular and are the same everywhere; float64, on the CPU.
at::Tensor pattern(at::IntArrayRef sizes, double step) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::arange(count, at::kDouble).mul_(step).sin_().view(sizes);
}

double difference(const at::Tensor& found, const at::Tensor& expected) {
  return found.detach().to(at::kCPU, at::kDouble).sub(expected.detach()).abs().max().item<double>();
}

at::Tensor product(const at::TensorOptions& options) {
  return at::matmul(pattern({64, 64}, 0.7).to(options), pattern({64, 64}, 1.3).to(options));
}

// The gradient of the weights: it passes through forward and backward.
at::Tensor convolution_gradient(const at::TensorOptions& options) {
  const at::Tensor input = pattern({1, 2, 9, 7}, 0.9).to(options);
  at::Tensor weight = pattern({3, 2, 3, 3}, 1.1).to(options).set_requires_grad(true);
  at::conv2d(input, weight, {}, 1, 1).square().mean().backward();
  return weight.grad();
}

std::optional<std::string> compare(const char* what, at::Tensor (*compute)(const at::TensorOptions&),
                                   at::Device device) {
  const at::Tensor found = compute(at::TensorOptions(device).dtype(at::kFloat));
  const double off = difference(found, compute(at::TensorOptions(at::kCPU).dtype(at::kDouble)));
  if (off <= kTolerance) return std::nullopt;
  return concat("a ", what, " on ", device.str(), " is off by ", shortest(off), "; expected at most ",
                shortest(kTolerance));
}

// CUDA's errors go on with advice for programmers.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::optional<std::string> probe(at::Device device) {
  try {
    set_current(device);
    const WithoutTf32 exact;
    if (auto wrong = compare("matrix product", product, device)) return wrong;
    return compare("convolution", convolution_gradient, device);
  } catch (const c10::Error& error) {
    return concat(device.str(), " failed: ", first_line(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return concat(device.str(), " failed: ", first_line(error.what()));
  }
}

}  // namespace gputrain::device
