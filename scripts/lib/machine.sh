# shellcheck shell=bash
# What the machine has (GPU, driver, CUDA toolkit) and which set of wheels that means.

# The wheels' CUDA 13.0 needs driver 580; CUDA 12 builds run from 525 on (minor version
# compatibility). torch 2.11.0 was made with these versions of cuDNN and NCCL: older ones lack
# functions that it calls.
driver_for_cuda13=580
driver_for_cuda12=525
oldest_capability=75
oldest_cudnn=9.19
oldest_nccl=2.28
oldest_libtorch=2.9
all_architectures='75-real;80-real;86-real;89-real;90-real;120-real;120-virtual'

version_at_least() {
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort --version-sort | head -n 1)" = "$2" ]
}

# --- GPU and driver ---------------------------------------------------------------------------

nvidia_smi() {
  local tool
  # Under WSL the tool is not always on PATH.
  tool=$(command -v nvidia-smi || printf '%s\n' "$probe_root/usr/lib/wsl/lib/nvidia-smi")
  [ -x "$tool" ] || return 1
  "$tool" "$@" 2>/dev/null
}

# One line a GPU, "driver, compute capability". Asked once: nvidia-smi takes seconds where the driver
# is not kept loaded. Tools of old drivers do not know compute_cap and refuse the whole question.
gpu_rows=''

probe_gpus() {
  # The tool's complaints come on standard output, so what a failed call printed is dropped.
  gpu_rows=$(nvidia_smi --query-gpu=driver_version,compute_cap --format=csv,noheader) ||
    gpu_rows=$(nvidia_smi --query-gpu=driver_version --format=csv,noheader) || gpu_rows=''
}

# Prints the driver's version; fails where no driver answers.
driver_version() {
  local version
  version=$(head -n 1 <<<"$gpu_rows")
  version=${version%%,*}
  if [ -z "$version" ] && [ -r "$probe_root/proc/driver/nvidia/version" ]; then
    version=$(grep --only-matching --extended-regexp '[0-9]{3}\.[0-9]+(\.[0-9]+)?' "$probe_root/proc/driver/nvidia/version" | head -n 1)
  fi
  [[ $version =~ ^[0-9]+(\.[0-9]+)*$ ]] && printf '%s\n' "$version"
}

# True where the PCI bus shows an NVIDIA display or 3D controller, driver or not.
has_nvidia_device() {
  local device
  for device in "$probe_root"/sys/bus/pci/devices/*; do
    [ -r "$device/vendor" ] || continue
    [[ $(<"$device/vendor") == 0x10de && $(<"$device/class") == 0x03* ]] && return 0
  done
  return 1
}

# The compute capabilities of the GPUs without their dots, such as 86, each once, ascending.
gpu_capabilities() {
  sed -n 's/.*, *\([0-9]*\)\.\([0-9]*\) *$/\1\2/p' <<<"$gpu_rows" | sort --numeric-sort --unique
}

# Those of them that the wheels have code for.
usable_capabilities() {
  local capability
  for capability in $(gpu_capabilities); do
    if [ "$capability" -ge "$oldest_capability" ]; then printf '%s\n' "$capability"; fi
  done
}

# How to get a driver that CUDA 13 runs with, on this distribution.
driver_advice() {
  local id='' version=''
  if [ -r "$probe_root/etc/os-release" ]; then
    id=$(sed -n 's/^ID=//p' "$probe_root/etc/os-release" | tr -d '"')
    version=$(sed -n 's/^VERSION_ID=//p' "$probe_root/etc/os-release" | tr -d '"')
  fi
  case $id-$version in
    debian-12 | debian-13)
      printf '%s\n' "On Debian $version the driver comes from NVIDIA's own repository (Debian's is older). Type, as root:
  apt-get install curl linux-headers-amd64
  curl -fLO https://developer.download.nvidia.com/compute/cuda/repos/debian$version/x86_64/cuda-keyring_1.1-1_all.deb
  dpkg -i cuda-keyring_1.1-1_all.deb
  apt-get update
  apt-get install nvidia-open
  reboot
If apt-get misses a dependency, add contrib to the components in apt's sources first."
      ;;
    ubuntu-22.04 | ubuntu-24.04)
      printf '%s\n' "On Ubuntu $version, type:
  sudo apt-get update
  sudo apt-get install nvidia-driver-$driver_for_cuda13-open
  sudo reboot"
      ;;
    *)
      printf '%s\n' "Get driver $driver_for_cuda13 or newer from this distribution or from https://www.nvidia.com/drivers and reboot."
      ;;
  esac
}

stop_for_driver() {
  die "$1
gputrain needs NVIDIA driver $driver_for_cuda13 or newer (CUDA 13), or driver $driver_for_cuda12 or newer with a CUDA 12 toolkit (nvcc) installed.
$(driver_advice)
To go on without the GPU: $script_name --cpu
Nothing was downloaded."
}

# --- CUDA toolkit -----------------------------------------------------------------------------

nvcc_version() {
  "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p'
}

# Prints the nvcc of the CUDA version $1 (such as 13), or fails.
find_nvcc() {
  local major=$1 candidate
  for candidate in "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "$(command -v nvcc || true)" \
    "$probe_root/usr/local/cuda/bin/nvcc" "$probe_root/usr/local/cuda-$major"*/bin/nvcc; do
    [ -x "$candidate" ] || continue
    if [[ $(nvcc_version "$candidate") == "$major".* ]]; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# Prints a C++ compiler that the nvcc $1 works with, the system's own first.
host_compiler() {
  local candidate candidates=(c++ g++-14 g++-13 g++-12 g++-11)
  if [ -n "${CUDAHOSTCXX:-}" ]; then candidates=("$CUDAHOSTCXX"); fi
  for candidate in "${candidates[@]}"; do
    # nvcc's headers refuse a compiler that is too new for it.
    if "$1" -ccbin "$candidate" -x cu -E /dev/null >/dev/null 2>&1; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  die "$1 ($(nvcc_version "$1")) works with none of these C++ compilers: ${candidates[*]}.
Install an older one, such as g++-12, and name it in CUDAHOSTCXX."
}

# The folder that holds bin/nvcc of a toolkit.
toolkit_of() {
  dirname "$(dirname "$(readlink --canonicalize-missing "$1")")"
}

# Where the libraries of the toolkit $1 are, separated by colons.
toolkit_libraries() {
  local directory found=()
  for directory in lib64 targets/x86_64-linux/lib extras/CUPTI/lib64; do
    if [ -d "$1/$directory" ]; then found+=("$1/$directory"); fi
  done
  (IFS=: && printf '%s\n' "${found[*]}")
}

# True where the library $2 is in the toolkit $1 or in the system's own folder.
has_library() {
  local directories directory
  IFS=: read -r -a directories <<<"$(toolkit_libraries "$1")"
  for directory in "${directories[@]}" "$probe_root/usr/lib/x86_64-linux-gnu"; do
    [ -e "$directory/$2" ] && return 0
  done
  return 1
}

# Prints major.minor from the defines ${3}_MAJOR and ${3}_MINOR of the header $2 near toolkit $1.
header_version() {
  local header
  for header in "$1/include/$2" "$probe_root/usr/include/$2" "$probe_root/usr/include/x86_64-linux-gnu/$2"; do
    [ -r "$header" ] || continue
    awk -v name="$3" '
      $1 == "#define" && $2 == name "_MAJOR" { major = $3 }
      $1 == "#define" && $2 == name "_MINOR" { minor = $3 }
      END { if (major != "") print major "." minor }' "$header"
    return
  done
}

# Prints what keeps the CUDA 13 toolkit $1 from being used, nothing if it can be.
toolkit_lacks() {
  local library version
  for library in libcudart.so.13 libcublas.so.13 libcusparse.so.12 libcusolver.so.12 libcufft.so.12 \
    libcurand.so.10 libcupti.so.13 libnvJitLink.so.13 libnvrtc.so.13; do
    has_library "$1" "$library" || { printf '%s\n' "no $library"; return; }
  done
  version=$(header_version "$1" cudnn_version.h CUDNN)
  if [ -z "$version" ] || ! has_library "$1" libcudnn.so.9; then
    printf 'no cuDNN 9\n'
  elif ! version_at_least "$version" "$oldest_cudnn"; then
    printf 'cuDNN %s, older than %s\n' "$version" "$oldest_cudnn"
  fi
}

has_recent_nccl() {
  local version
  version=$(header_version "$1" nccl.h NCCL)
  has_library "$1" libnccl.so.2 && [ -n "$version" ] && version_at_least "$version" "$oldest_nccl"
}

# --- The choice -------------------------------------------------------------------------------
#
# choose_set fills these:
#   set_name      the set, or "own" for a LibTorch of the user's
#   set_reason    why, for people
#   lock_sets     names in the lock file that make up the set
#   linked        library folders of an installed toolkit that the set links to
#   cuda          ON or OFF
#   nvcc          the compiler of an installed toolkit; empty: the one in the set

set_name='' set_reason='' lock_sets=() linked='' cuda=OFF nvcc=''

take_cpu() {
  set_name=cpu set_reason=$1 lock_sets=(cpu) cuda=OFF
}

take_cuda12() {
  nvcc=$(find_nvcc 12) || die "the set cuda12 needs a CUDA 12 toolkit: no nvcc 12 on PATH, in CUDA_HOME or in /usr/local/cuda*"
  set_name=cuda12 lock_sets=(cuda12) cuda=ON
  set_reason="$1; compiler $nvcc ($(nvcc_version "$nvcc"))"
}

take_cuda13_wheels() {
  set_name=cuda13 set_reason="$1; compiler and libraries come from wheels" lock_sets=(cuda13) cuda=ON
}

take_cuda13_toolkit() {
  local toolkit
  nvcc=$(find_nvcc 13) || die "the set cuda13-toolkit needs a CUDA 13 toolkit: no nvcc 13 on PATH, in CUDA_HOME or in /usr/local/cuda*"
  toolkit=$(toolkit_of "$nvcc")
  set_name=cuda13-toolkit lock_sets=(cuda13-toolkit) cuda=ON
  linked=$(toolkit_libraries "$toolkit")
  set_reason="$1; CUDA $(nvcc_version "$nvcc") with cuDNN in $toolkit"
  if ! has_recent_nccl "$toolkit"; then
    lock_sets+=(nccl13)
    set_reason+="; NCCL comes from a wheel"
  fi
}

take_cuda13() {
  local found lacking
  if ! found=$(find_nvcc 13); then
    take_cuda13_wheels "$1; no CUDA 13 toolkit here"
    return
  fi
  lacking=$(toolkit_lacks "$(toolkit_of "$found")")
  if [ -n "$lacking" ]; then
    take_cuda13_wheels "$1; the CUDA 13 toolkit in $(toolkit_of "$found") has $lacking"
  else
    take_cuda13_toolkit "$1"
  fi
}

choose_for_gpu() {
  local driver=$1
  check_capabilities
  if version_at_least "$driver" "$driver_for_cuda13"; then
    take_cuda13 "GPU with driver $driver"
  elif version_at_least "$driver" "$driver_for_cuda12" && find_nvcc 12 >/dev/null; then
    take_cuda12 "GPU with driver $driver, older than $driver_for_cuda13"
  else
    stop_for_driver "this machine's NVIDIA driver is $driver."
  fi
}

# GPUs that are too old for the wheels are passed over, unless there are no others.
check_capabilities() {
  local capability usable
  usable=$(usable_capabilities)
  for capability in $(gpu_capabilities); do
    if [ "$capability" -ge "$oldest_capability" ]; then continue; fi
    [ -n "$usable" ] ||
      die "the GPU has compute capability ${capability%?}.${capability: -1}; gputrain needs 7.5 (Turing: GTX 16, RTX 20) or newer.
To go on without it: $script_name --cpu"
    say "the GPU with compute capability ${capability%?}.${capability: -1} is passed over: gputrain needs 7.5 (Turing) or newer"
  done
}

# $1: auto, cpu, cuda, or the name of a set.
choose_set() {
  local wish=$1 driver
  probe_gpus
  if [ -n "${Torch_DIR:-}" ]; then
    choose_own "$wish"
    return
  fi
  [ "$(uname -m)" = x86_64 ] || die "the wheels are for x86_64, this is $(uname -m); give your own LibTorch with Torch_DIR=…"
  case $wish in
    cpu) take_cpu "asked for" ;;
    cuda) take_cuda13 "asked for" ;;
    cuda13) take_cuda13_wheels "asked for" ;;
    cuda13-toolkit) take_cuda13_toolkit "asked for" ;;
    cuda12) take_cuda12 "asked for" ;;
    auto)
      if driver=$(driver_version); then
        choose_for_gpu "$driver"
      elif has_nvidia_device; then
        stop_for_driver "this machine has an NVIDIA GPU, but no NVIDIA driver answers (nvidia-smi)."
      else
        take_cpu "no NVIDIA GPU here"
      fi
      ;;
    *) die "there is no set $wish; sets: cpu, cuda13, cuda13-toolkit, cuda12" ;;
  esac
}

# --- A LibTorch of the user's -----------------------------------------------------------------

# The folder that holds TorchConfig.cmake, from Torch_DIR, which may also name LibTorch's root.
own_config_folder() {
  local folder
  for folder in "$Torch_DIR" "$Torch_DIR/share/cmake/Torch" "$Torch_DIR/torch/share/cmake/Torch"; do
    if [ -f "$folder/TorchConfig.cmake" ]; then
      (cd "$folder" && pwd)
      return
    fi
  done
  die "Torch_DIR=$Torch_DIR holds no TorchConfig.cmake; it is <LibTorch>/share/cmake/Torch or <LibTorch> itself"
}

# Takes the LibTorch that Torch_DIR names. $1: auto, cpu or cuda.
choose_own() {
  local config version library major
  [[ $1 == auto || $1 == cpu || $1 == cuda ]] || die "--set $1 and Torch_DIR contradict each other: give one of them"
  config=$(own_config_folder)
  version=$(sed -n 's/^set(PACKAGE_VERSION "\([0-9.]*\).*/\1/p' "$config/TorchConfigVersion.cmake" 2>/dev/null || true)
  [ -n "$version" ] || die "cannot tell the version of the LibTorch in Torch_DIR=$Torch_DIR (TorchConfigVersion.cmake)"
  version_at_least "$version" "$oldest_libtorch" ||
    die "Torch_DIR=$Torch_DIR is LibTorch $version; gputrain needs $oldest_libtorch or newer"
  set_name=own set_reason="Torch_DIR names LibTorch $version" cuda=OFF
  library=$(cd "$config/../../../lib" 2>/dev/null && pwd)/libc10_cuda.so
  if [ ! -f "$library" ]; then
    [ "$1" != cuda ] || die "--cuda: the LibTorch in Torch_DIR=$Torch_DIR was built without CUDA"
    set_reason+=", built without CUDA"
    return
  fi
  if [ "$1" = cpu ]; then return; fi
  if [ "$1" = auto ] && ! driver_version >/dev/null; then
    set_reason+=", no NVIDIA GPU here"
    return
  fi
  # Which CUDA it was built with, read from the name of the runtime library it asks for.
  major=$(grep --text --only-matching --extended-regexp 'libcudart[-.a-z0-9]*\.so\.[0-9]+' "$library" | head -n 1)
  major=${major##*.}
  nvcc=$(find_nvcc "$major") || die "Torch_DIR=$Torch_DIR was built with CUDA $major, and there is no nvcc $major on PATH, in CUDA_HOME or in /usr/local/cuda*.
Install the CUDA $major toolkit, or call $script_name --cpu"
  set_reason+=", built with CUDA $major; compiler $nvcc"
  cuda=ON
}

# --- Architectures ----------------------------------------------------------------------------

# The architectures that a compiler knows, such as 75 80 86, ascending.
known_architectures() {
  "$1" --list-gpu-arch 2>/dev/null | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort --numeric-sort --unique
}

# Turns a list in CMake's words into what the compiler $2 can do: an architecture newer than the
# newest it knows becomes that one's PTX, which the driver translates when the program starts.
fitting_architectures() {
  local list=$1 known newest word number fitting=()
  known=$(known_architectures "$2")
  newest=$(tail -n 1 <<<"$known")
  for word in ${list//;/ }; do
    number=${word%%-*}
    if [ -n "$newest" ] && [ "$number" -gt "$newest" ]; then word=$newest-virtual; fi
    [[ " ${fitting[*]} " == *" $word "* ]] || fitting+=("$word")
  done
  (IFS=';' && printf '%s\n' "${fitting[*]}")
}

# The architectures to build for in CMake's words. $1: what was asked for (may be empty).
wanted_architectures() {
  local capabilities
  if [ -n "$1" ] && [ "$1" != all ]; then
    printf '%s\n' "${1//,/;}"
    return
  fi
  # A LibTorch of the user's may serve older GPUs.
  if [ "$set_name" = own ]; then
    mapfile -t capabilities < <(gpu_capabilities)
  else
    mapfile -t capabilities < <(usable_capabilities)
  fi
  if [ "$1" = all ] || [ "${#capabilities[@]}" = 0 ]; then
    printf '%s\n' "$all_architectures"
  else
    (IFS=';' && printf '%s\n' "${capabilities[*]/%/-real}")
  fi
}
