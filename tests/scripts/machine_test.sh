#!/usr/bin/env bash
# Which set of LibTorch is taken for which machine, and what is said where none fits.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/support.sh"

# A GPU: its driver and its compute capabilities.
gpu() {
  local driver=$1 capability rows=''
  shift
  for capability in "$@"; do rows+="$driver, $capability"$'\n'; done
  stub nvidia-smi "printf '%s' '$rows'"
}

distribution() {
  printf 'ID=%s\nVERSION_ID="%s"\n' "$1" "$2" >"$sandbox/machine/etc/os-release"
}

# A CUDA toolkit in CUDA_HOME: its version, that of its cuDNN and that of its NCCL (- for none).
toolkit() {
  local version=$1 cudnn=$2 nccl=$3 library
  local folder=$sandbox/toolkit
  mkdir -p "$folder/bin" "$folder/lib64" "$folder/include"
  cat >"$folder/bin/nvcc" <<END
#!/usr/bin/env bash
case \$1 in
  --list-gpu-arch) printf 'compute_%s\n' 75 86 90 ;;
  -ccbin) ! grep --quiet --line-regexp --fixed-strings -e "\$2" "$folder/refused" 2>/dev/null ;;
  *) echo 'Cuda compilation tools, release $version, V$version.1' ;;
esac
END
  chmod +x "$folder/bin/nvcc"
  for library in cudart.so.13 cublas.so.13 cusparse.so.12 cusolver.so.12 cufft.so.12 curand.so.10 cupti.so.13 \
    nvJitLink.so.13 nvrtc.so.13; do
    touch "$folder/lib64/lib$library"
  done
  if [ "$cudnn" != - ]; then
    touch "$folder/lib64/libcudnn.so.9"
    printf '#define CUDNN_MAJOR %s\n#define CUDNN_MINOR %s\n' "${cudnn%.*}" "${cudnn#*.}" >"$folder/include/cudnn_version.h"
  fi
  if [ "$nccl" != - ]; then
    touch "$folder/lib64/libnccl.so.2"
    printf '#define NCCL_MAJOR %s\n#define NCCL_MINOR %s\n' "${nccl%.*}" "${nccl#*.}" >"$folder/include/nccl.h"
  fi
  with=("CUDA_HOME=$folder")
}

expect_driver_advice() {
  run quickstart
  expect_status 1
  expect_said "this machine's NVIDIA driver is 550.163.01"
  expect_said "needs NVIDIA driver 580 or newer"
  expect_said "$1"
  expect_said "To go on without the GPU: quickstart --cpu"
  expect_said "Nothing was downloaded."
  [ ! -d "$cache" ] || fail "there is a cache already"
  [ ! -s "$sandbox/calls" ] || fail "something was called: $(<"$sandbox/calls")"
}

test_no_gpu_means_the_cpu_set() {
  run quickstart --dry-run
  expect_status 0
  expect_said "LibTorch: cpu (no NVIDIA GPU here)"
}

test_a_gpu_and_no_toolkit_mean_compiler_and_libraries_from_wheels() {
  gpu 580.95.05 8.6
  run quickstart --dry-run
  expect_status 0
  expect_said "LibTorch: cuda13 (GPU with driver 580.95.05; no CUDA 13 toolkit here"
  expect_said "-DGPUTRAIN_CUDA=ON"
  expect_said "/nvidia/cu13/bin/nvcc"
  expect_said "-DCMAKE_CUDA_ARCHITECTURES=86-real"
}

test_a_toolkit_with_cudnn_and_nccl_is_used() {
  gpu 580.95.05 8.6
  toolkit 13.0 9.19 2.28
  run quickstart --dry-run
  expect_status 0
  expect_said "LibTorch: cuda13-toolkit (GPU with driver 580.95.05; CUDA 13.0 with cuDNN in $sandbox/toolkit)"
  expect_said "-DCMAKE_CUDA_COMPILER=$sandbox/toolkit/bin/nvcc -DCUDAToolkit_ROOT=$sandbox/toolkit"
}

test_a_toolkit_without_nccl_is_used_with_nccl_from_a_wheel() {
  gpu 580.95.05 8.6
  toolkit 13.0 9.20 -
  cp "$repository/scripts/lock/wheels.txt" "$sandbox/index/wheels.txt"
  run quickstart --dry-run
  expect_status 0
  expect_said "LibTorch: cuda13-toolkit"
  expect_said "NCCL comes from a wheel"
  expect_said "nvidia_nccl_cu13"
  expect_unsaid "nvidia_cudnn"
}

test_a_toolkit_without_cudnn_or_with_an_old_one_is_not_used() {
  gpu 580.95.05 8.6
  toolkit 13.0 - 2.28
  run quickstart --dry-run
  expect_said "LibTorch: cuda13 ("
  expect_said "has no cuDNN 9"
  toolkit 13.0 9.10 2.28
  run quickstart --dry-run
  expect_said "LibTorch: cuda13 ("
  expect_said "has cuDNN 9.10, older than 9.19"
}

test_an_old_driver_with_a_cuda_12_toolkit_means_the_cuda_12_set() {
  gpu 550.163.01 12.0
  toolkit 12.4 - -
  run quickstart --dry-run
  expect_status 0
  expect_said "LibTorch: cuda12 (GPU with driver 550.163.01, older than 580; compiler $sandbox/toolkit/bin/nvcc (12.4))"
  # What this compiler does not know is built as PTX of the newest that it knows.
  expect_said "-DCMAKE_CUDA_ARCHITECTURES=90-virtual"
}

test_an_older_compiler_is_taken_where_nvcc_refuses_the_systems_own() {
  toolkit 13.0 9.19 2.28
  printf 'c++\ng++-14\n' >"$sandbox/toolkit/refused"
  run quickstart --cuda --dry-run
  expect_status 0
  expect_said "-DCMAKE_CUDA_HOST_COMPILER=g++-13 -DCMAKE_EXE_LINKER_FLAGS=-L/"
  printf 'c++\ng++-14\ng++-13\ng++-12\ng++-11\n' >"$sandbox/toolkit/refused"
  run quickstart --cuda --dry-run
  expect_status 1
  expect_said "works with none of these C++ compilers: c++ g++-14 g++-13 g++-12 g++-11"
}

test_an_old_driver_on_debian_12() {
  gpu 550.163.01 8.6
  distribution debian 12
  expect_driver_advice "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb"
}

test_an_old_driver_on_debian_13() {
  gpu 550.163.01 8.6
  distribution debian 13
  expect_driver_advice "https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/cuda-keyring_1.1-1_all.deb"
}

test_an_old_driver_on_ubuntu_22_04() {
  gpu 550.163.01 8.6
  distribution ubuntu 22.04
  expect_driver_advice "sudo apt-get install nvidia-driver-580-open"
}

test_an_old_driver_on_ubuntu_24_04() {
  gpu 550.163.01 8.6
  distribution ubuntu 24.04
  expect_driver_advice "sudo apt-get install nvidia-driver-580-open"
}

test_an_old_driver_on_another_distribution() {
  gpu 550.163.01 8.6
  distribution fedora 42
  expect_driver_advice "https://www.nvidia.com/drivers"
}

test_a_driver_too_old_for_cuda_12_is_refused_even_with_a_toolkit() {
  gpu 470.256.02 8.6
  toolkit 12.4 - -
  run quickstart
  expect_status 1
  expect_said "this machine's NVIDIA driver is 470.256.02"
}

test_a_driver_whose_tool_does_not_know_compute_capabilities_is_told_its_version() {
  stub nvidia-smi 'case "$*" in
    *compute_cap*) echo "Field \"compute_cap\" is not a valid field to query."; exit 2 ;;
    *) echo 450.80.02 ;;
  esac'
  run quickstart
  expect_status 1
  expect_said "this machine's NVIDIA driver is 450.80.02"
}

test_a_gpu_whose_driver_does_not_answer_is_noticed() {
  mkdir -p "$sandbox/machine/sys/bus/pci/devices/0000:01:00.0"
  echo 0x10de >"$sandbox/machine/sys/bus/pci/devices/0000:01:00.0/vendor"
  echo 0x030000 >"$sandbox/machine/sys/bus/pci/devices/0000:01:00.0/class"
  stub nvidia-smi 'echo "NVIDIA-SMI has failed because it could not communicate with the driver."; exit 9'
  run quickstart
  expect_status 1
  expect_said "has an NVIDIA GPU, but no NVIDIA driver answers"
}

test_the_cpu_option_goes_on_with_an_old_driver() {
  gpu 470.256.02 8.6
  run quickstart --cpu --dry-run
  expect_status 0
  expect_said "LibTorch: cpu (asked for)"
  expect_said "-DGPUTRAIN_CUDA=OFF"
}

test_a_gpu_too_old_for_cuda_13_is_refused() {
  gpu 580.95.05 6.1
  run quickstart
  expect_status 1
  expect_said "the GPU has compute capability 6.1; gputrain needs 7.5"
}

test_a_gpu_too_old_beside_a_newer_one_is_passed_over() {
  gpu 580.95.05 6.1 8.9
  run quickstart --dry-run
  expect_status 0
  expect_said "the GPU with compute capability 6.1 is passed over"
  expect_said "-DCMAKE_CUDA_ARCHITECTURES=89-real"
  expect_unsaid "61-real"
}

test_every_kind_of_gpu_in_the_machine_is_built_for_once() {
  gpu 580.95.05 8.9 7.5 8.9
  run quickstart --dry-run
  expect_said "'-DCMAKE_CUDA_ARCHITECTURES=75-real;89-real'"
}

test_cuda_without_a_gpu_builds_for_all_architectures() {
  run quickstart --cuda --archs all --dry-run
  expect_said "'-DCMAKE_CUDA_ARCHITECTURES=75-real;80-real;86-real;89-real;90-real;120-real;120-virtual'"
}

test_architectures_can_be_named() {
  run quickstart --cuda --archs 86,90-virtual --dry-run
  expect_said "'-DCMAKE_CUDA_ARCHITECTURES=86;90-virtual'"
}

test_another_processor_is_refused() {
  stub uname 'echo aarch64'
  run quickstart
  expect_status 1
  expect_said "the wheels are for x86_64, this is aarch64"
}

test_an_option_without_its_value_is_refused() {
  run quickstart --archs
  expect_status 1
  expect_said "--archs needs a value"
}

test_an_option_may_have_its_value_behind_an_equals_sign() {
  run quickstart --cuda --archs=86 --preset=dev --dry-run
  expect_status 0
  expect_said "would configure: cmake --preset dev"
  expect_said "-DCMAKE_CUDA_ARCHITECTURES=86"
}

test_an_unknown_option_of_quickstart_is_refused_at_once() {
  run quickstart --arch=86
  expect_status 1
  expect_said "there is no option --arch=86; did you mean --archs?"
  expect_said "quickstart -- epochs=1"
  run quickstart -x
  expect_status 1
  expect_said "there is no option -x"
  run quickstart --cpu --dry-run -- --resume
  expect_status 0
  expect_said "--restart --resume"
}

test_a_preset_without_cuda_means_the_cpu_set() {
  gpu 470.256.02 8.6
  run quickstart --preset asan --dry-run
  expect_status 0
  expect_said "LibTorch: cpu (asked for)"
  expect_said "-DGPUTRAIN_CUDA=OFF"
  run quickstart --cuda --preset asan --dry-run
  expect_status 1
  expect_said "--preset asan builds without CUDA, and cuda was asked for"
}

test_a_relative_cache_is_one_in_the_folder_of_the_call() {
  with=("XDG_CACHE_HOME=my-cache")
  cd "$sandbox/home" || exit
  run quickstart --cpu --dry-run
  expect_status 0
  expect_said "-DTorch_DIR=$sandbox/home/my-cache/gputrain/sets/"
}

# A LibTorch of the user's: its version, and the CUDA runtime that it was linked with (- for none).
own_libtorch() {
  local folder=$sandbox/libtorch
  mkdir -p "$folder/lib" "$folder/share/cmake/Torch"
  touch "$folder/share/cmake/Torch/TorchConfig.cmake"
  printf 'set(PACKAGE_VERSION "%s")\n' "$1" >"$folder/share/cmake/Torch/TorchConfigVersion.cmake"
  rm -f "$folder/lib/libc10_cuda.so"
  if [ "$2" != - ]; then printf 'ELF\0libcudart.so.%s\0' "$2" >"$folder/lib/libc10_cuda.so"; fi
  with+=("Torch_DIR=$folder/share/cmake/Torch")
}

test_a_libtorch_of_the_users_that_is_too_old_is_refused() {
  own_libtorch 2.6.0 -
  run quickstart
  expect_status 1
  expect_said "is LibTorch 2.6.0; gputrain needs 2.9 or newer"
  own_libtorch 2.10.0 -
  run quickstart --dry-run
  expect_status 0
}

test_a_libtorch_of_the_users_without_cuda_builds_without_it() {
  gpu 580.95.05 8.6
  own_libtorch 2.9.1 -
  run quickstart --dry-run
  expect_status 0
  expect_said "LibTorch: own (Torch_DIR names LibTorch 2.9.1, built without CUDA)"
  expect_said "-DTorch_DIR=$sandbox/libtorch/share/cmake/Torch -DGPUTRAIN_CUDA=OFF"
  expect_unsaid "would fetch"
  run quickstart --cuda --dry-run
  expect_status 1
  expect_said "was built without CUDA"
}

test_a_libtorch_of_the_users_with_cuda_needs_its_compiler() {
  gpu 580.95.05 8.6
  own_libtorch 2.9.1 12
  run quickstart
  expect_status 1
  expect_said "was built with CUDA 12, and there is no nvcc 12"
  toolkit 12.8 - -
  own_libtorch 2.9.1 12
  run quickstart --dry-run
  expect_status 0
  expect_said "-DCMAKE_CUDA_COMPILER=$sandbox/toolkit/bin/nvcc"
}

test_torch_dir_that_holds_no_libtorch_is_refused() {
  with=("Torch_DIR=$sandbox/home")
  run quickstart
  expect_status 1
  expect_said "Torch_DIR=$sandbox/home holds no TorchConfig.cmake"
}

run_tests
