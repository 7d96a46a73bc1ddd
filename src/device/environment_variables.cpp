#include "device/environment_variables.h"

namespace gputrain::device {
namespace {

bool always(const std::string&) {
  return true;
}

bool switched_on(const std::string& value) {
  return !value.empty() && value != "0" && value != "false" && value != "FALSE" && value != "OFF";
}

bool is_eager(const std::string& value) {
  return value == "EAGER";
}

}  // namespace

const std::vector<WatchedVariable>& watched_variables() {
  static const std::vector<WatchedVariable> variables = {
      {"ATEN_CPU_CAPABILITY", always, true, "work on the CPU uses these instructions and no better ones"},
      {"CUBLASLT_WORKSPACE_SIZE", always, false, "it changes the workspace of matrix products, in KiB"},
      {"CUBLAS_WORKSPACE_CONFIG", always, false,
       "it changes the workspace of matrix products; :16:8 and :0:0 slow them down"},
      {"CUDA_CACHE_DISABLE", switched_on, false,
       "kernels that the driver translates are translated at each start"},
      {"CUDA_DEVICE_MAX_CONNECTIONS", always, false,
       "it limits how many streams run side by side; with 1, copies wait for kernels"},
      {"CUDA_DEVICE_ORDER", always, false, "it decides which GPU is cuda:0"},
      {"CUDA_FORCE_PTX_JIT", switched_on, true,
       "all kernels are translated anew, and those without PTX fail"},
      {"CUDA_LAUNCH_BLOCKING", switched_on, true, "the host waits for every kernel"},
      {"CUDA_MODULE_LOADING", is_eager, false,
       "all kernels are loaded at the start, which takes seconds and memory"},
      {"CUDA_VISIBLE_DEVICES", always, false, "only these GPUs are seen, counted from cuda:0"},
      {"CUDNN_LOGINFO_DBG", switched_on, true, "cuDNN writes a log of every call"},
      {"CUDNN_LOGLEVEL_DBG", switched_on, true, "cuDNN writes a log of its calls"},
      {"DISABLE_ADDMM_CUDA_LT", switched_on, false, "matrix products with a bias take two kernels, not one"},
      {"GOMP_CPU_AFFINITY", always, true,
       "the main thread is bound to one core, and threads that read data start on it"},
      {"KMP_AFFINITY", always, false, "nothing; only Intel's and LLVM's OpenMP read it"},
      {"LD_LIBRARY_PATH", always, false, "CUDA or cuDNN of another version may be loaded from there"},
      {"LD_PRELOAD", always, false, "libraries come before those of this program"},
      {"MALLOC_ARENA_MAX", always, false,
       "threads that read data share fewer heaps and wait for one another"},
      {"MKL_NUM_THREADS", always, false,
       "it sets the threads that compute on the CPU, before OMP_NUM_THREADS"},
      {"NCCL_DEBUG", always, false, "NCCL writes a log"},
      {"NCCL_P2P_DISABLE", switched_on, true, "GPUs exchange data through the machine's memory"},
      {"NCCL_SHM_DISABLE", switched_on, true, "GPUs without a direct link exchange data through the network"},
      {"NVIDIA_TF32_OVERRIDE", always, true,
       "it overrules the recipe's precision: 0 keeps TF32 off, 1 turns it on"},
      {"OMP_NUM_THREADS", always, false, "it sets the threads that compute on the CPU"},
      {"OMP_PROC_BIND", switched_on, true,
       "the main thread is bound to one core, and threads that read data start on it"},
      {"PYTORCH_ALLOC_CONF", always, false, "it changes how GPU memory is cached"},
      {"PYTORCH_CUDA_ALLOC_CONF", always, false, "it changes how GPU memory is cached"},
      {"PYTORCH_NO_CUDA_MEMORY_CACHING", always, true,
       "whatever its value, every tensor asks the driver for memory and waits"},
      {"PYTORCH_TUNABLEOP_ENABLED", switched_on, false,
       "matrix products are timed and chosen at their first use, so that runs may differ"},
      {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", switched_on, false,
       "nothing in a run, where the recipe's precision decides"},
      {"TORCH_BLAS_PREFER_CUBLASLT", switched_on, false, "matrix products come from cuBLASLt"},
      {"TORCH_CUDNN_USE_HEURISTIC_MODE_B", switched_on, false, "cuDNN chooses its algorithms in another way"},
      {"TORCH_CUDNN_V8_API_DISABLED", switched_on, true, "convolutions take cuDNN's older, slower way"},
      {"TORCH_SHOW_CPP_STACKTRACES", switched_on, false, "error messages carry stack traces"},
  };
  return variables;
}

}  // namespace gputrain::device
