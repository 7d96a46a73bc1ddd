#include "device/device.h"

#include "base/error.h"
#include "base/text.h"
#include "device/cuda_facts.h"
#include "device/machine.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cctype>
#include <cstdlib>

namespace gputrain::device {
namespace {

std::string gpu_list(const CudaState& state) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < state.capabilities.size(); ++i) names.push_back(concat("cuda:", i));
  return join(names, ", ", " and ");
}

std::string visible_text(const CudaState& state) {
  return state.visible_devices ? concat("CUDA_VISIBLE_DEVICES is \"", *state.visible_devices, "\"") : "";
}

std::string too_old_gpu(const CudaState& state, std::size_t index) {
  return concat("cuda:", index, " has compute capability ", capability_text(state.capabilities[index]),
                ", for which CUDA ", cuda_version_text(state.runtime),
                " has no code any more; use a newer GPU, or build with an older LibTorch (Torch_DIR=...)");
}

std::optional<std::size_t> first_usable(const CudaState& state) {
  for (std::size_t i = 0; i < state.capabilities.size(); ++i)
    if (runs_on_capability(state.runtime, state.capabilities[i])) return i;
  return std::nullopt;
}

// The N of "cuda:N", or nothing when that is not what `spec` says.
std::optional<std::size_t> index_in(const std::string& spec) {
  const std::string prefix = "cuda:";
  if (spec.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
  const std::string digits = spec.substr(prefix.size());
  if (digits.empty() || digits.size() > 3) return std::nullopt;
  for (const char c : digits)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return std::nullopt;
  return std::stoul(digits);
}

[[noreturn]] void refuse(const std::string& spec, const std::string& why) {
  throw SettingError("device", concat("is ", spec, ", but ", why));
}

at::Device cuda_device(std::size_t index) {
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

at::Device choose_index(const std::string& spec, std::size_t index, const CudaState& state) {
  const std::size_t count = state.capabilities.size();
  if (index >= count) {
    const std::string visible = visible_text(state);
    refuse(spec, concat("there ", count == 1 ? "is 1 GPU" : concat("are ", count, " GPUs"), ": ",
                        gpu_list(state), visible.empty() ? "" : concat(" (", visible, ")")));
  }
  if (!runs_on_capability(state.runtime, state.capabilities[index])) refuse(spec, too_old_gpu(state, index));
  return cuda_device(index);
}

std::string why_none_listed(const CudaState& state) {
  if (state.visible_devices)
    return concat("no GPU is visible: ", visible_text(state), "; unset it, or name a GPU that exists");
  return concat("CUDA lists no GPU",
                state.error.empty() ? std::string() : concat(" (it says: ", state.error, ")"),
                "; see what nvidia-smi says");
}

void add_tf32_notice(bool tf32, std::vector<std::string>& notices) {
  const char* value = std::getenv("NVIDIA_TF32_OVERRIDE");
  if (value == nullptr) return;
  const std::string text = value;
  if (text == "0" && tf32)
    notices.push_back(
        "NVIDIA_TF32_OVERRIDE=0 in the environment keeps TF32 off though the precision asks for it; unset "
        "it");
  if (text == "1" && !tf32)
    notices.push_back(
        "NVIDIA_TF32_OVERRIDE=1 in the environment turns TF32 on though the precision does not ask for it; "
        "unset "
        "it");
}

// LibTorch counts the cores of the machine; a control group or an affinity may allow fewer.
void set_threads(std::optional<std::int64_t> wanted, int cores) {
  if (wanted) {
    at::set_num_threads(static_cast<int>(*wanted));
  } else if (std::getenv("OMP_NUM_THREADS") == nullptr && at::get_num_threads() > cores) {
    at::set_num_threads(cores);
  }
}

void add_thread_notice(std::optional<std::int64_t> wanted, int cores, std::vector<std::string>& notices) {
  const int threads = at::get_num_threads();
  if (threads <= cores) return;
  notices.push_back(concat(wanted ? "cpu.threads is " : "OMP_NUM_THREADS asks for ", threads,
                           wanted ? "" : " threads", ", but this process may use ", cores,
                           cores == 1 ? " core" : " cores", "; threads that share a core slow training: ",
                           wanted ? "write cpu.threads: auto" : "unset OMP_NUM_THREADS"));
}

}  // namespace

CudaState cuda_state() {
  CudaState state = query_cuda();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) state.visible_devices = visible;
  return state;
}

std::string cuda_version_text(int version) {
  return concat(version / 1000, ".", version % 1000 / 10);
}

std::string capability_text(int capability) {
  return concat(capability / 10, ".", capability % 10);
}

// Source: CUDA compatibility guide, minor version compatibility.
int oldest_driver_for(int cuda_version) {
  if (cuda_version >= 13000) return 580;
  return cuda_version >= 12000 ? 525 : 450;
}

// CUDA 13 dropped what came before Turing.
bool runs_on_capability(int cuda_version, int capability) {
  return capability >= (cuda_version >= 13000 ? 75 : 50);
}

std::optional<std::string> why_no_gpu(const CudaState& state) {
  if (!state.built)
    return "this gputrain was built without CUDA; build it with CUDA (scripts/quickstart does so on a "
           "machine with "
           "an NVIDIA driver)";
  const int needed = oldest_driver_for(state.runtime);
  if (state.driver == 0)
    return concat("no NVIDIA driver was found; install driver ", needed,
                  " or newer, and check it with nvidia-smi");
  // Within one major version an older driver serves a newer runtime.
  if (state.driver / 1000 < state.runtime / 1000)
    return concat("the NVIDIA driver is too old: it runs CUDA up to ", cuda_version_text(state.driver),
                  ", and this gputrain was built with CUDA ", cuda_version_text(state.runtime),
                  "; install driver ", needed, " or newer");
  if (state.capabilities.empty()) return why_none_listed(state);
  if (!first_usable(state)) return too_old_gpu(state, 0);
  return std::nullopt;
}

at::Device choose_device(const std::string& spec) {
  if (spec == "cpu") return at::Device(at::kCPU);
  return choose_device(spec, cuda_state());
}

at::Device choose_device(const std::string& spec, const CudaState& state) {
  if (spec == "cpu") return at::Device(at::kCPU);
  const std::optional<std::size_t> index = index_in(spec);
  if (spec != "auto" && spec != "cuda" && !index)
    throw SettingError("device", concat("is ", spec, "; expected auto, cpu, cuda or cuda:N"));
  const std::optional<std::string> why = why_no_gpu(state);
  if (spec == "auto" && why) return at::Device(at::kCPU);
  if (why && (!index || state.capabilities.empty())) refuse(spec, concat(*why, ", or say device: cpu"));
  return index ? choose_index(spec, *index, state) : cuda_device(*first_usable(state));
}

void set_current(at::Device device) {
  if (!device.is_cuda()) return;
  at::globalContext().lazyInitDevice(device.type());
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

// cuBLAS gives the same bits with a workspace of its own for each stream. Source: cuBLAS, reproducibility.
std::vector<std::string> set_deterministic(bool on) {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(on, /*warn_only=*/false);
  context.setDeterministicCuDNN(on);
  // Filling memory before it is written would cost time; nothing here reads what it has not written.
  context.setDeterministicFillUninitializedMemory(false);
  if (!on) return {};
  constexpr const char* kVariable = "CUBLAS_WORKSPACE_CONFIG";
  constexpr const char* kFast = ":4096:8";
  const char* given = std::getenv(kVariable);
  const std::string before = given == nullptr ? "" : given;
  if (before == kFast || before == ":16:8") return {};
  ::setenv(kVariable, kFast, /*overwrite=*/1);
  if (before.empty()) return {};
  return {concat(kVariable, " is ", before, " in the environment; deterministic: true makes it ", kFast)};
}

std::optional<std::string> refused_operator(const std::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find(" does not have a deterministic implementation");
  if (end == std::string::npos) return std::nullopt;
  const std::size_t before = text.find_last_of(" \n", end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end - begin);
}

SettingError not_deterministic(const std::string& refused) {
  return {"deterministic", concat("is true, and LibTorch has no deterministic form of ", refused,
                                  " here; expected false, or a recipe that does without it")};
}

// The setters that also exist before 2.9 keep the old and the new record of TF32 in agreement; mixing them
// with setFloat32Precision makes LibTorch throw at the next query.
std::vector<std::string> configure(at::Device device, bool tf32, bool cudnn_benchmark,
                                   std::optional<std::int64_t> cpu_threads) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(tf32);
  context.setAllowTF32CuDNN(tf32);
  context.setBenchmarkCuDNN(cudnn_benchmark);
  const int cores = usable_cores();
  set_threads(cpu_threads, cores);
  std::vector<std::string> notices;
  add_thread_notice(cpu_threads, cores, notices);
  if (device.is_cuda()) add_tf32_notice(tf32, notices);
  return notices;
}

}  // namespace gputrain::device
