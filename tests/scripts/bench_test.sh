#!/usr/bin/env bash
# scripts/bench/host_waits sees what waits and what does not, on a CUDA runtime that is a shared library with nothing behind;
# and every script of the folder explains itself.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/support.sh"

# Runs host_waits on the fake trainer, with a log line every $log_every steps.
log_every=2
host_waits() {
  cc -shared -fPIC "$repository/tests/scripts/fake_cudart.c" -o "$sandbox/libfake.so" || fail "cc failed"
  cc "$repository/tests/scripts/fake_trainer.c" -o "$sandbox/bin/trainer" "$sandbox/libfake.so" || fail "cc failed"
  run bench/host_waits --binary "$sandbox/bin/trainer" --precisions fp32 --log-every "$log_every"
}

test_waits_at_log_lines_alone_are_fine() {
  host_waits
  expect_status 0
  expect_said "| fp32 | 1 to 2 | 3 | 0 | 0 | 0 | 0 | 0 |"
  expect_said "| fp32 | 4 to 6 | 3 | 0 | 0 | 0 | 0 | 0 |"
  expect_said "no waits between log lines after warm-up"
}

test_a_wait_for_the_stream_between_log_lines_is_found() {
  with=(FAKE_WAIT=stream)
  host_waits
  expect_status 1
  expect_said "| fp32 | 2 to 4 | 3 | 0 | 0 | 0 | 0 | 0 |"
  expect_said "fp32, steps 4 to 6: cudaStreamSynchronize, "
}

test_a_copy_to_pageable_memory_is_a_wait() {
  with=(FAKE_WAIT=copy)
  host_waits
  expect_status 1
  expect_said "fp32, steps 4 to 6: cudaMemcpyAsync, "
}

test_a_wait_in_warm_up_is_fine() {
  with=(FAKE_WAIT=stream)
  log_every=6
  host_waits
  expect_status 0
  expect_said "| fp32 | 1 to 6 | 3 | 1 ("
}

test_waiting_for_a_step_with_a_later_one_queued_is_throttling() {
  log_every=6
  host_waits
  expect_status 0
  expect_said "| fp32 | 1 to 6 | 3 | 0 | 2 ("
}

test_a_program_without_a_shared_cuda_runtime_is_refused() {
  stub program 'exit 0'
  run bench/host_waits --binary "$sandbox/bin/program" --precisions fp32
  expect_status 1
  expect_said "made no call of a shared CUDA runtime"
}

test_every_script_prints_its_usage_without_any_package() {
  local script
  for script in "$repository"/scripts/bench/*; do
    head -n 1 "$script" | grep -q '^#!.*python3' || continue
    python3 -I -S "$script" --help > "$sandbox/usage" 2>&1 || fail "$script --help: $(cat "$sandbox/usage")"
    grep -q "^usage: " "$sandbox/usage" || fail "$script --help prints no usage"
  done
}

run_tests
