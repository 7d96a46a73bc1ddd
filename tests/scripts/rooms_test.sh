#!/usr/bin/env bash
# scripts/check-rooms finds includes that go against the table.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/support.sh"

# A file of src/ in the sandbox with one line in it.
source_file() {
  mkdir -p "$(dirname "$sandbox/repo/src/$1")"
  printf '#pragma once\n%s\n' "$2" >"$sandbox/repo/src/$1"
}

# Checks the sandbox's sources, which hold one good file beside those of the test.
check() {
  mkdir -p "$sandbox/repo/docs"
  cp "$repository/docs/rooms.md" "$sandbox/repo/docs/rooms.md"
  source_file base/units.h '#include <string>'
  run check-rooms "$sandbox/repo"
}

test_includes_of_the_same_room_and_of_rooms_below_are_fine() {
  source_file train/loop.h '#include "data/loader.h"'
  source_file train/update.h '  #  include "train/loop.h"'
  check
  expect_status 0
  expect_said "check-rooms: 3 files, 0 problems"
}

test_an_include_of_a_room_above_is_named_with_its_line() {
  source_file data/loader.h '#include "train/loop.h"'
  check
  expect_status 1
  expect_said 'src/data/loader.h:2: includes "train/loop.h", but room train (row 6) is not below data (row 4)'
}

test_an_include_of_a_room_in_the_same_row_is_refused() {
  source_file data/loader.cpp '#include "models/all.h"'
  check
  expect_status 1
  expect_said 'room models (row 4) is not below data (row 4)'
}

test_an_include_without_its_room_is_refused() {
  source_file data/loader.cpp '#include "loader.h"'
  check
  expect_status 1
  expect_said 'write "data/loader.h", the path from src/'
}

test_a_room_that_is_not_in_the_table_is_refused() {
  source_file attic/old.h ''
  source_file data/loader.cpp '#include "elsewhere/x.h"'
  check
  expect_status 1
  expect_said "room attic is not in the table"
  expect_said "there is no room elsewhere"
}

test_a_condition_about_cuda_is_refused_outside_kernels_and_device() {
  source_file kernels/fill.h '#ifdef __CUDACC__'
  source_file device/choice.cpp '#if defined(USE_CUDA)'
  check
  expect_status 0
  source_file optim/sgd.cpp '#ifdef __CUDACC__'
  check
  expect_status 1
  expect_said "src/optim/sgd.cpp:2: a condition about CUDA outside kernels and device"
}

test_kernels_may_not_include_libtorch() {
  source_file kernels/fill.h '#include <ATen/core/Tensor.h>'
  check
  expect_status 1
  expect_said "kernels takes raw pointers"
}

run_tests
