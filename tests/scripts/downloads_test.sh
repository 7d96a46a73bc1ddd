#!/usr/bin/env bash
# Downloads that break off, are killed, are wrong, or happen twice at once.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/support.sh"

torch_wheel=torch-2.11.0-cp313-cp313-manylinux_2_28_x86_64.whl

wait_for_half_of_torch() {
  local tries
  for tries in {1..200}; do
    if [ "$(stat --format=%s "$cache/downloads/$torch_wheel.part" 2>/dev/null || echo 0)" -gt 100000 ]; then return; fi
    sleep 0.05
  done
  fail "no half of torch arrived within 10 s"
}

test_a_set_is_fetched_unpacked_and_trained_with() {
  start_index
  run quickstart -- epochs=1
  expect_status 0
  expect_whole_set
  expect_call "cmake --preset release -DTorch_DIR=$cache/sets/cpu-"
  expect_call "-DGPUTRAIN_CUDA=OFF"
  expect_said "trained with: run configs/quickstart.yaml --restart epochs=1"
}

test_a_second_call_needs_no_network_and_no_apt_and_does_not_configure() {
  start_index
  run quickstart
  local requests
  requests=$(wc -l <"$sandbox/index/requests")
  : >"$sandbox/calls"
  run quickstart
  expect_status 0
  [ "$(wc -l <"$sandbox/index/requests")" = "$requests" ] || fail "the second call asked the index"
  expect_no_call apt-get
  expect_no_call --preset
  expect_call "cmake --build build/release"
  expect_said "trained with: run configs/quickstart.yaml --restart"
}

test_a_connection_cut_half_way_is_continued_in_the_same_call() {
  start_index
  echo "$torch_wheel" >"$sandbox/index/cut"
  run quickstart
  expect_status 0
  expect_whole_set
  requests_for torch | grep --quiet 'bytes=[1-9]' || fail "no request for the rest: $(requests_for torch)"
}

test_a_server_that_cannot_continue_a_file_sends_it_anew() {
  start_index
  echo "$torch_wheel" >"$sandbox/index/cut"
  touch "$sandbox/index/no-ranges"
  run quickstart
  expect_status 0
  expect_whole_set
}

test_kill_in_a_download_leaves_nothing_half_made_and_the_next_call_continues() {
  start_index
  echo "$torch_wheel" >"$sandbox/index/stall"
  start quickstart first.out
  wait_for_half_of_torch
  kill_group
  expect_nothing_whole wheels
  expect_nothing_whole sets
  [ "$(ls "$cache/downloads")" = "$torch_wheel.part" ] || fail "downloads hold $(ls "$cache/downloads")"
  run quickstart
  expect_status 0
  expect_said "continuing at"
  expect_whole_set
  requests_for torch | grep --quiet 'bytes=[1-9]' || fail "no request for the rest: $(requests_for torch)"
}

test_kill_while_unpacking_leaves_nothing_half_made_and_the_next_call_continues() {
  start_index
  touch "$sandbox/hold-unpack"
  start quickstart first.out
  wait_for "$sandbox/held"
  kill_group
  expect_nothing_whole wheels
  expect_nothing_whole sets
  rm "$sandbox/hold-unpack"
  run quickstart
  expect_status 0
  expect_whole_set
  [ "$(requests_for torch | wc -l)" = 1 ] || fail "the wheel was fetched twice"
  [ -z "$(find "$cache" -name .making)" ] || fail "a temporary folder is left"
}

test_kill_while_a_set_is_laid_out_leaves_no_half_set() {
  start_index
  stub cp "touch '$sandbox/held'; while [ -e '$sandbox/hold-copy' ]; do sleep 0.05; done; exec /usr/bin/cp \"\$@\""
  touch "$sandbox/hold-copy"
  start quickstart first.out
  wait_for "$sandbox/held"
  kill_group
  expect_nothing_whole sets
  rm "$sandbox/hold-copy"
  run quickstart
  expect_status 0
  expect_whole_set
}

test_a_wrong_hash_names_the_file_and_what_to_do() {
  start_index
  local good
  good=$(sha256sum "$sandbox/index/files/$torch_wheel")
  good=${good%% *}
  # The same size, another content.
  printf 'x' | dd of="$sandbox/index/files/$torch_wheel" bs=1 seek=5000 conv=notrunc status=none
  run quickstart
  expect_status 1
  expect_said "$torch_wheel is not the file that scripts/lock/wheels.txt names"
  expect_said "expected SHA-256 $good"
  expect_said "found    SHA-256 $(sha256sum <"$sandbox/index/files/$torch_wheel" | cut -d ' ' -f 1)"
  expect_said "call quickstart again to fetch it anew"
  [ -z "$(ls "$cache/downloads")" ] || fail "the wrong file is still there"
  expect_nothing_whole sets
}

test_without_a_network_it_says_what_it_was_fetching_and_that_it_continues() {
  start_index
  index=http://127.0.0.1:9/simple
  run quickstart
  expect_status 1
  expect_said "cannot fetch the page of torch (for $torch_wheel) from 127.0.0.1:9"
  expect_said "call quickstart again and it continues where it stopped"
}

test_a_password_in_the_index_address_is_not_shown() {
  start_index
  index=${index/127.0.0.1/someone:secret@127.0.0.1}
  run quickstart
  expect_status 0
  expect_unsaid secret
}

test_two_at_once_wait_for_one_another_and_fetch_once() {
  start_index
  touch "$sandbox/hold-unpack"
  start quickstart first.out
  local first=$group
  wait_for "$sandbox/held"
  start quickstart second.out
  local second=$group tries
  for tries in {1..200}; do
    grep --quiet "another set-up is going on" "$sandbox/second.out" && break
    sleep 0.05
  done
  rm "$sandbox/hold-unpack"
  wait "$first" || fail "the first failed: $(<"$sandbox/first.out")"
  wait "$second" || fail "the second failed: $(<"$sandbox/second.out")"
  grep --quiet "another set-up is going on" "$sandbox/second.out" || fail "the second did not say that it waits"
  [ "$(requests_for torch | wc -l)" = 1 ] || fail "torch was fetched twice"
  expect_whole_set
}

test_a_dry_run_says_everything_and_changes_nothing() {
  start_index
  stub dpkg-query 'exit 1'
  local before
  before=$(find "$sandbox" -not -path "$sandbox/out" | sort)
  run quickstart --dry-run
  [ "$(find "$sandbox" -not -path "$sandbox/out" | sort)" = "$before" ] || fail "a dry run made or removed files"
  expect_status 0
  expect_said "LibTorch: cpu (no NVIDIA GPU here)"
  expect_said "would install as root: apt-get update && apt-get install --yes --no-install-recommends g++ cmake"
  expect_said "$torch_wheel (401 kB)"
  expect_said "would unpack into $cache/sets/cpu-"
  expect_said "would configure: cmake --preset release -DTorch_DIR="
  expect_said "would build: cmake --build build/release"
  expect_said "would run: build/release/bin/gputrain run configs/quickstart.yaml --restart"
  [ ! -s "$sandbox/index/requests" ] || fail "a dry run asked the index"
  [ ! -s "$sandbox/calls" ] || fail "a dry run called $(<"$sandbox/calls")"
}

run_tests
