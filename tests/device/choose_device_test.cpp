#include "base/error.h"
#include "device/device.h"
#include "support/catch.h"

using gputrain::Error;
using gputrain::ExitCode;
using gputrain::device::choose_device;
using gputrain::device::CudaState;
using gputrain::device::why_no_gpu;

namespace {

CudaState with_gpus(std::vector<int> capabilities) {
  CudaState state;
  state.built = true;
  state.runtime = 13000;
  state.driver = 13010;
  state.capabilities = std::move(capabilities);
  return state;
}

std::string refusal(const std::string& spec, const CudaState& state) {
  try {
    choose_device(spec, state);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kUsage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("choose_device: auto is the first GPU, and the CPU where none can be used", "[device]") {
  CHECK(choose_device("auto", with_gpus({86, 90})).str() == "cuda:0");
  CHECK(choose_device("auto", with_gpus({})).str() == "cpu");
  CHECK(choose_device("auto", CudaState{}).str() == "cpu");
}

TEST_CASE("choose_device: auto and cuda pass over a GPU that this CUDA has no code for", "[device]") {
  CHECK(choose_device("auto", with_gpus({61, 86})).str() == "cuda:1");
  CHECK(choose_device("cuda", with_gpus({61, 86})).str() == "cuda:1");
}

TEST_CASE("choose_device: cpu, cuda and cuda:N are what they say", "[device]") {
  CHECK(choose_device("cpu", with_gpus({86})).str() == "cpu");
  CHECK(choose_device("cuda", with_gpus({86, 90})).str() == "cuda:0");
  CHECK(choose_device("cuda:1", with_gpus({86, 90})).str() == "cuda:1");
}

TEST_CASE("choose_device: another word is refused with the words that are allowed", "[device]") {
  for (const char* spec : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1234", "CUDA", ""}) {
    CHECK(refusal(spec, with_gpus({86})) ==
          std::string("device is ") + spec + "; expected auto, cpu, cuda or cuda:N");
  }
}

TEST_CASE("choose_device: a build without CUDA says how to get one with it", "[device]") {
  CHECK(refusal("cuda", CudaState{}) ==
        "device is cuda, but this gputrain was built without CUDA; build it with CUDA (scripts/quickstart "
        "does so "
        "on a machine with an NVIDIA driver), or say device: cpu");
}

TEST_CASE("choose_device: a missing driver is named, with the version to install", "[device]") {
  CudaState state = with_gpus({});
  state.driver = 0;
  CHECK(refusal("cuda:0", state) ==
        "device is cuda:0, but no NVIDIA driver was found; install driver 580 or newer, and check it with "
        "nvidia-smi, or say device: cpu");
}

TEST_CASE("choose_device: a driver that is too old is named with both versions of CUDA", "[device]") {
  CudaState state = with_gpus({});
  state.driver = 12020;
  state.error = "CUDA driver version is insufficient for CUDA runtime version";
  CHECK(refusal("cuda", state) ==
        "device is cuda, but the NVIDIA driver is too old: it runs CUDA up to 12.2, and this gputrain was "
        "built "
        "with CUDA 13.0; install driver 580 or newer, or say device: cpu");
}

TEST_CASE("choose_device: a driver of the same major version serves a newer runtime", "[device]") {
  CudaState state = with_gpus({86});
  state.runtime = 12080;
  state.driver = 12020;
  CHECK(choose_device("cuda", state).str() == "cuda:0");
}

TEST_CASE("choose_device: an index out of range is refused with the GPUs there are", "[device]") {
  CHECK(refusal("cuda:3", with_gpus({86, 90})) ==
        "device is cuda:3, but there are 2 GPUs: cuda:0 and cuda:1");
  CudaState one = with_gpus({86});
  one.visible_devices = "1";
  CHECK(refusal("cuda:1", one) ==
        "device is cuda:1, but there is 1 GPU: cuda:0 (CUDA_VISIBLE_DEVICES is \"1\")");
}

TEST_CASE("choose_device: CUDA_VISIBLE_DEVICES that hides every GPU is named", "[device]") {
  CudaState state = with_gpus({});
  state.visible_devices = "";
  CHECK(refusal("cuda", state) ==
        "device is cuda, but no GPU is visible: CUDA_VISIBLE_DEVICES is \"\"; unset it, or name a GPU that "
        "exists, "
        "or say device: cpu");
}

TEST_CASE("choose_device: a GPU older than CUDA's code is refused by its capability", "[device]") {
  CHECK_THAT(
      refusal("cuda:1", with_gpus({86, 61})),
      ContainsSubstring("cuda:1 has compute capability 6.1, for which CUDA 13.0 has no code any more"));
}

TEST_CASE("why_no_gpu: says what CUDA says when it lists no GPU, and nothing when there is one", "[device]") {
  CudaState state = with_gpus({});
  state.error = "unknown error";
  CHECK(why_no_gpu(state) == "CUDA lists no GPU (it says: unknown error); see what nvidia-smi says");
  CHECK_FALSE(why_no_gpu(with_gpus({75})).has_value());
}
