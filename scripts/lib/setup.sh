# shellcheck shell=bash
# From the command line to a built program: what scripts/quickstart and scripts/test share.

for part in common packages index wheels machine build; do
  # shellcheck disable=SC1090
  . "$(dirname "${BASH_SOURCE[0]}")/$part.sh"
done

wish=auto
preset=release
architectures=''
further=()

common_options='  --cpu          build and run without CUDA, whatever the machine has
  --cuda         build with CUDA, also where there is no GPU
  --set NAME     take this set of LibTorch wheels: cpu, cuda13, cuda13-toolkit, cuda12
  --archs LIST   GPU architectures to compile for, such as 86 or 75,86-real,120-virtual, or all
                 (default: those of the GPUs in the machine, all where there is none)
  --preset NAME  CMake preset to configure and build (default: release); cpu, asan and tsan build
                 without CUDA
  --dry-run      say what would be done, and change nothing
  -h, --help     print this'

common_environment='  Torch_DIR        another LibTorch, from 2.9 on, instead of the pinned one
  XDG_CACHE_HOME   where gputrain/, the cache of LibTorch, goes (default: ~/.cache)
  PIP_INDEX_URL    a mirror of the Python package index (default: https://pypi.org/simple)
  CUDA_HOME        the CUDA toolkit to use'

known_options=(--cpu --cuda --set --archs --preset --dry-run --help)

# Prints the known option whose beginning $1 shares for the longest, nothing where none is near.
nearest_option() {
  local option length best='' best_length=3
  for option in "${known_options[@]}"; do
    for ((length = ${#option}; length > best_length; --length)); do
      if [ "${option:0:length}" = "${1:0:length}" ]; then best=$option best_length=$length; fi
    done
  done
  printf '%s\n' "$best"
}

refuse_option() {
  local near
  near=$(nearest_option "$1")
  die "there is no option $1${near:+; did you mean $near?}
What is for gputrain run goes behind --, as in: $script_name -- epochs=1 (see --help)"
}

# These presets turn CUDA off, so a GPU in the machine has no say.
take_wish_of_preset() {
  [[ $preset == cpu || $preset == asan || $preset == tsan ]] || return 0
  [[ $wish == auto || $wish == cpu ]] ||
    die "--preset $preset builds without CUDA, and $wish was asked for; leave one of the two out"
  wish=cpu
}

# Reads the options that both scripts know. What follows `--` goes into further; so do unknown options
# where $1 is "pass", and where it is "refuse" they are errors. $2: the function that prints the help text.
parse_options() {
  local unknown=$1 usage=$2
  shift 2
  while [ $# -gt 0 ]; do
    case $1 in
      --set=* | --archs=* | --preset=*)
        set -- "${1%%=*}" "${1#*=}" "${@:2}"
        continue
        ;;
      --cpu | --cuda) wish=${1#--} ;;
      --set | --archs | --preset)
        [ $# -ge 2 ] || die "$1 needs a value (see --help)"
        case $1 in
          --set) wish=$2 ;;
          --archs) architectures=$2 ;;
          --preset) preset=$2 ;;
        esac
        shift
        ;;
      --dry-run) dry_run=yes ;;
      -h | --help)
        "$usage"
        exit 0
        ;;
      --)
        shift
        further+=("$@")
        break
        ;;
      -*)
        if [ "$unknown" = refuse ]; then refuse_option "$1"; fi
        further+=("$1")
        ;;
      *) further+=("$1") ;;
    esac
    shift
  done
  take_wish_of_preset
}

# Provides LibTorch and puts the folder of its TorchConfig.cmake into torch_config, and the compiler
# that comes with the set, if that is the one to use, into nvcc.
torch_config=''

provide_libtorch() {
  local folder
  if [ "$set_name" = own ]; then
    torch_config=$(own_config_folder)
    return
  fi
  folder=$(set_folder "$set_name" "$linked" "${lock_sets[@]}")
  provide_set "$folder" "$linked" "${lock_sets[@]}"
  torch_config=$folder/torch/share/cmake/Torch
  if [ "$cuda" = ON ] && [ -z "$nvcc" ]; then nvcc=$folder/nvidia/cu13/bin/nvcc; fi
}

# Fills cmake_arguments.
cmake_arguments=()

choose_cmake_arguments() {
  local toolkit compiler tests=ON
  # A build of the program alone needs no Catch2. Where it is installed, both scripts configure
  # alike, so that neither undoes the other's configuration.
  if [ "$1" = gputrain ] && [ -n "$(missing_packages catch2)" ]; then tests=OFF; fi
  cmake_arguments=("-DTorch_DIR=$torch_config" "-DGPUTRAIN_CUDA=$cuda" "-DGPUTRAIN_TESTS=$tests")
  if [ "$cuda" = OFF ]; then return; fi
  toolkit=$(toolkit_of "$nvcc")
  cmake_arguments+=("-DCMAKE_CUDA_COMPILER=$nvcc")
  # Debian's toolkit is spread over /usr, where CMake finds it by itself.
  if [[ $toolkit != /usr && $toolkit != /usr/lib/* ]]; then cmake_arguments+=("-DCUDAToolkit_ROOT=$toolkit"); fi
  # A dry run may not have the compilers yet.
  if [ -x "$nvcc" ] && command -v c++ >/dev/null; then
    compiler=$(host_compiler "$nvcc")
    if [ "$compiler" != c++ ]; then
      cmake_arguments+=("-DCMAKE_CUDA_HOST_COMPILER=$compiler")
      # CMake would let the linker find nvcc's older standard library first, which lacks what the
      # rest of the program and the system's libraries need; the newer one serves both.
      cmake_arguments+=("-DCMAKE_EXE_LINKER_FLAGS=-L$(dirname "$(c++ -print-file-name=libstdc++.so)")")
    fi
  fi
  cmake_arguments+=("-DCMAKE_CUDA_ARCHITECTURES=$(fitting_architectures "$(wanted_architectures "$architectures")" "$nvcc")")
}

# Packages, LibTorch, configuration, build. $1: what to build (gputrain or all), the rest: packages
# beside those of the build.
set_up() {
  local target=$1
  shift
  choose_set "$wish"
  say "LibTorch: $set_name ($set_reason)"
  provide_packages "${build_packages[@]}" "$@"
  provide_libtorch
  choose_cmake_arguments "$target"
  if [ "$dry_run" = no ]; then hold 7 "$root_dir/build/.lock" "build in this folder"; fi
  configure "$preset" "${cmake_arguments[@]}"
  build "$preset" "$target"
  if [ "$dry_run" = no ]; then release 7; fi
}
