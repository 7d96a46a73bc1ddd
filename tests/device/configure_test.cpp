#include "device/device.h"
#include "device/machine.h"
#include "support/catch.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace gputrain::device;

namespace {

const at::Device kCpu(at::kCPU);
const at::Device kGpu(at::kCUDA, 0);

// LibTorch keeps an old and a new record of TF32; these questions compare them and throw where they differ.
void check_tf32(bool expected) {
  at::Context& context = at::globalContext();
  CHECK(context.allowTF32CuBLAS() == expected);
  CHECK(context.allowTF32CuDNN() == expected);
  CHECK((context.float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST) == expected);
}

class Variable {
 public:
  explicit Variable(const char* name, const char* value = nullptr) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("configure: TF32 is on everywhere or off everywhere, switched as often as one likes", "[device]") {
  for (const bool tf32 : {true, false, true, false}) {
    configure(kCpu, tf32, false, std::nullopt);
    check_tf32(tf32);
  }
}

TEST_CASE("deterministic: LibTorch and cuDNN are told, cuBLAS gets its workspace, and all of it ends",
          "[device]") {
  const Variable workspace("CUBLAS_WORKSPACE_CONFIG");
  at::Context& context = at::globalContext();
  CHECK(set_deterministic(true).empty());
  CHECK(context.deterministicAlgorithms());
  CHECK_FALSE(context.deterministicAlgorithmsWarnOnly());
  CHECK(context.deterministicCuDNN());
  CHECK_FALSE(context.deterministicFillUninitializedMemory());
  CHECK(std::getenv("CUBLAS_WORKSPACE_CONFIG") == std::string(":4096:8"));
  CHECK(set_deterministic(false).empty());
  CHECK_FALSE(context.deterministicAlgorithms());
  CHECK_FALSE(context.deterministicCuDNN());
}

TEST_CASE("deterministic: a workspace of cuBLAS that serves stays, another one is replaced with a notice",
          "[device]") {
  {
    const Variable smaller("CUBLAS_WORKSPACE_CONFIG", ":16:8");
    CHECK(set_deterministic(true).empty());
    CHECK(std::getenv("CUBLAS_WORKSPACE_CONFIG") == std::string(":16:8"));
  }
  const Variable useless("CUBLAS_WORKSPACE_CONFIG", ":4096:2");
  CHECK(set_deterministic(true) ==
        std::vector<std::string>{"CUBLAS_WORKSPACE_CONFIG is :4096:2 in the environment; deterministic: true "
                                 "makes it :4096:8"});
  CHECK(std::getenv("CUBLAS_WORKSPACE_CONFIG") == std::string(":4096:8"));
  set_deterministic(false);
}

TEST_CASE("deterministic: an operator that cannot be is told by name", "[device]") {
  set_deterministic(true);
  std::optional<std::string> refused;
  try {
    at::zeros({2}).put_(at::zeros({1}, at::kLong), at::zeros({1}));
  } catch (const std::exception& error) {
    refused = refused_operator(error);
  }
  set_deterministic(false);
  CHECK(refused == "put_");
  CHECK_FALSE(refused_operator(std::runtime_error("put_ is out of range")));
  CHECK(std::string(not_deterministic("put_").what()) ==
        "deterministic is true, and LibTorch has no deterministic form of put_ here; expected false, or a "
        "recipe that does without it");
}

TEST_CASE("configure: cuDNN's benchmark mode follows the recipe", "[device]") {
  configure(kCpu, false, true, std::nullopt);
  CHECK(at::globalContext().benchmarkCuDNN());
  configure(kCpu, false, false, std::nullopt);
  CHECK_FALSE(at::globalContext().benchmarkCuDNN());
}

TEST_CASE("configure: the number of CPU threads is set, and OMP_NUM_THREADS left alone without one",
          "[device]") {
  const Variable given("OMP_NUM_THREADS", "3");
  configure(kCpu, false, false, 3);
  CHECK(at::get_num_threads() == 3);
  configure(kCpu, false, false, std::nullopt);
  CHECK(at::get_num_threads() == 3);
}

TEST_CASE("configure: without any word about threads there are no more than cores to use", "[device]") {
  const int cores = gputrain::device::usable_cores();
  const Variable not_given("OMP_NUM_THREADS");
  at::set_num_threads(cores + 1);
  CHECK(configure(kCpu, false, false, std::nullopt).empty());
  CHECK(at::get_num_threads() == cores);
  at::set_num_threads(1);
  configure(kCpu, false, false, std::nullopt);
  CHECK(at::get_num_threads() == 1);
}

TEST_CASE("configure: more threads than cores to use are a notice", "[device]") {
  const int cores = gputrain::device::usable_cores();
  const auto notices = configure(kCpu, false, false, cores + 1);
  REQUIRE(notices.size() == 1);
  CHECK_THAT(notices[0], ContainsSubstring("cpu.threads is " + std::to_string(cores + 1)) &&
                             ContainsSubstring("may use " + std::to_string(cores) + " core") &&
                             ContainsSubstring("write cpu.threads: auto"));
  CHECK(configure(kCpu, false, false, cores).empty());
}

TEST_CASE("configure: NVIDIA_TF32_OVERRIDE that contradicts the precision is a notice on a GPU alone",
          "[device]") {
  configure(kCpu, false, false, 1);
  const Variable off("NVIDIA_TF32_OVERRIDE", "0");
  const auto notices = configure(kGpu, true, false, std::nullopt);
  REQUIRE(notices.size() == 1);
  CHECK_THAT(notices[0], ContainsSubstring("NVIDIA_TF32_OVERRIDE=0") && ContainsSubstring("unset it"));
  CHECK(configure(kGpu, false, false, std::nullopt).empty());
  CHECK(configure(kCpu, true, false, std::nullopt).empty());
  const Variable on("NVIDIA_TF32_OVERRIDE", "1");
  CHECK(configure(kGpu, false, false, std::nullopt).size() == 1);
  CHECK(configure(kGpu, true, false, std::nullopt).empty());
}
