# shellcheck shell=bash
# What the tests of the scripts share. A test is a function named test_…; each runs in a sandbox of its
# own: a copy of scripts/, a cache, stubs for the tools of the system, and no network but 127.0.0.1.

set -uo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${GPUTRAIN_TEST_PYTHON:-python3}
real_cmake=$(command -v cmake)

fail() {
  printf '      %s\n' "$@"
  if [ -f "$sandbox/out" ]; then sed 's/^/      | /' "$sandbox/out"; fi
  exit 1
}

# Writes an executable $1 of the sandbox's PATH with the shell code $2.
stub() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$sandbox/bin/$1"
  chmod +x "$sandbox/bin/$1"
}

# cmake unpacks for real, after holding at a file if one asks for it; configuring and building only
# leave traces: a line in calls, and a program that tells its arguments.
make_stubs() {
  stub cmake "
if [ \"\$1\" = -E ]; then
  '$real_cmake' \"\$@\" || exit
  if [ -e '$sandbox/hold-unpack' ]; then touch '$sandbox/held'; while [ -e '$sandbox/hold-unpack' ]; do sleep 0.05; done; fi
  exit 0
fi
printf 'cmake %s\n' \"\$*\" >>'$sandbox/calls'
mkdir -p build/release/bin
printf '#!/usr/bin/env bash\necho trained with: \"\$@\"\n' >build/release/bin/gputrain
chmod +x build/release/bin/gputrain"
  stub dpkg-query 'printf installed'
  stub apt-get "printf 'apt-get %s\n' \"\$*\" >>'$sandbox/calls'"
  stub id 'echo 0'
  stub sudo 'exit 1'
  stub uname 'echo x86_64'
  # A GPU and a compiler of the real machine stay out of sight.
  stub nvidia-smi 'exit 9'
  stub nvcc 'exit 1'
}

make_sandbox() {
  sandbox=$(mktemp -d)
  mkdir -p "$sandbox/bin" "$sandbox/home" "$sandbox/machine/etc" "$sandbox/repo" "$sandbox/index"
  cp -r "$repository/scripts" "$sandbox/repo/scripts"
  cp "$repository/scripts/lock/wheels.txt" "$sandbox/index/wheels.txt"
  touch "$sandbox/calls" "$sandbox/index/requests"
  make_stubs
  cache=$sandbox/cache/gputrain
  # Nothing listens there until start_index.
  index=http://127.0.0.1:9/simple
}

start_index() {
  "$python" "$repository/tests/scripts/index_server.py" "$sandbox/index" >"$sandbox/server.log" 2>&1 &
  server=$!
  wait_for "$sandbox/index/port"
  index=http://127.0.0.1:$(<"$sandbox/index/port")/simple
}

clean_up() {
  if [ -n "${server:-}" ]; then kill "$server" 2>/dev/null; fi
  rm -rf "$sandbox"
}

wait_for() {
  local tries
  for tries in {1..200}; do
    if [ -e "$1" ]; then return; fi
    sleep 0.05
  done
  fail "$1 did not appear within 10 s"
}

# The environment of a script in the sandbox, as words for env. Further variables: in `with`.
with=()
sandbox_environment() {
  environment=(-i "PATH=$sandbox/bin:/usr/bin:/bin" "HOME=$sandbox/home" "XDG_CACHE_HOME=$sandbox/cache"
    "PIP_INDEX_URL=$index" "GPUTRAIN_LOCK_LIST=$sandbox/index/wheels.txt" "GPUTRAIN_PROBE_ROOT=$sandbox/machine"
    GPUTRAIN_RETRY_DELAY=0 "${with[@]}")
}

# Runs a script of the sandbox to its end; leaves status, and what it said in the file out.
run() {
  local script=$1
  shift
  sandbox_environment
  env "${environment[@]}" "$sandbox/repo/scripts/$script" "$@" >"$sandbox/out" 2>&1 </dev/null
  status=$?
}

# Starts a script in a process group of its own, whose number is left in group.
start() {
  local script=$1 out=$2
  shift 2
  sandbox_environment
  setsid env "${environment[@]}" "$sandbox/repo/scripts/$script" "$@" >"$sandbox/$out" 2>&1 </dev/null &
  group=$!
}

kill_group() {
  kill -9 -- "-$group"
  wait "$group" 2>/dev/null
}

expect_status() {
  [ "$status" = "$1" ] || fail "exit status is $status, expected $1"
}

expect_said() {
  grep --quiet --fixed-strings -- "$1" "$sandbox/out" || fail "it did not say: $1"
}

expect_unsaid() {
  ! grep --quiet --fixed-strings -- "$1" "$sandbox/out" || fail "it said: $1"
}

expect_call() {
  grep --quiet --fixed-strings -- "$1" "$sandbox/calls" || fail "no call of: $1" "calls were:" "$(<"$sandbox/calls")"
}

expect_no_call() {
  ! grep --quiet --fixed-strings -- "$1" "$sandbox/calls" || fail "a call of: $1"
}

# The lines of the server's record for a file whose name starts with $1.
requests_for() {
  grep "/files/$1" "$sandbox/index/requests"
}

expect_whole_set() {
  local sets=("$cache"/sets/cpu-*)
  [ "${#sets[@]}" = 1 ] || fail "there are several sets: ${sets[*]}"
  [ -f "${sets[0]}/torch/lib/libtorch_cpu.so" ] || fail "the set lacks libtorch_cpu.so"
  [ -f "${sets[0]}/nvidia/cu13/lib/libcudart.so.13" ] || fail "the set lacks libcudart.so.13"
  [ ! -e "${sets[0]}/torch/nn" ] || fail "Python files of torch were unpacked"
  [ -z "$(ls -A "$cache/downloads")" ] || fail "downloads are left: $(ls -A "$cache/downloads")"
}

expect_nothing_whole() {
  local found
  found=$(find "$cache/$1" -mindepth 1 -maxdepth 1 -not -name '.*' 2>/dev/null)
  [ -z "$found" ] || fail "there is already: $found"
}

# Runs every test_ function of the file that sourced this.
run_tests() {
  local test failed=0 passed=0
  for test in $(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p'); do
    if (
      make_sandbox
      trap clean_up EXIT
      "$test"
    ); then
      passed=$((passed + 1))
      printf 'ok     %s\n' "${test//_/ }"
    else
      failed=$((failed + 1))
      printf 'FAILED %s\n' "${test//_/ }"
    fi
  done
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" = 0 ]
}
