# shellcheck shell=bash
# Configures and builds with CMake.

# Compiling a file that includes LibTorch's module headers takes up to 1.5 GiB.
gibibytes_per_job=2

parallel_jobs() {
  local jobs by_memory
  jobs=$(nproc)
  by_memory=$(awk -v each="$gibibytes_per_job" '$1 == "MemAvailable:" { print int($2 / 1048576 / each) }' /proc/meminfo)
  if [ "${by_memory:-$jobs}" -lt "$jobs" ]; then jobs=$by_memory; fi
  if [ "$jobs" -lt 1 ]; then jobs=1; fi
  printf '%s\n' "$jobs"
}

# Configures unless the last configuration that worked had the same arguments; CMake itself notices
# changes of its own files during the build. $1: the preset, the rest CMake's further arguments.
configure() {
  local preset=$1 command last
  local folder=$root_dir/build/$preset
  shift
  command=$(quoted cmake --preset "$preset" "$@")
  last=$(cat "$folder/.configured-with" 2>/dev/null || true)
  if [ "$last" = "$command" ]; then return; fi
  if [ "$dry_run" = yes ]; then
    say "would configure: $command"
    return
  fi
  step "$command"
  # Another compiler or LibTorch must not meet what CMake remembered of the last one. Objects stay:
  # Ninja builds those anew whose command changed.
  rm -rf "$folder/CMakeCache.txt" "$folder"/CMakeFiles/[0-9]* "$folder/.configured-with"
  mkdir -p "$folder"
  if ! (cd "$root_dir" && cmake --preset "$preset" "$@") >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    die "CMake could not configure build/$preset (its messages are above)"
  fi
  printf '%s\n' "$command" >"$folder/.configured-with"
}

build() {
  local preset=$1 target=$2
  local command=(cmake --build "build/$preset" --target "$target" --parallel "$(parallel_jobs)")
  if [ "$dry_run" = yes ]; then
    say "would build: $(quoted "${command[@]}")"
    return
  fi
  step "$(quoted "${command[@]}")"
  (cd "$root_dir" && "${command[@]}") >&2
}
