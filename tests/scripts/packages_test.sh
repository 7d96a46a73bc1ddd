#!/usr/bin/env bash
# System packages: only those missing, as root, through sudo, or not at all.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/support.sh"

# All packages are installed but these.
lacking() {
  local package cases=''
  for package in "$@"; do cases+=" $package"; done
  stub dpkg-query "for last; do :; done
case '$cases ' in *\" \$last \"*) echo unknown; exit 1 ;; *) printf installed ;; esac"
}

install_line="apt-get update && apt-get install --yes --no-install-recommends ninja-build libyaml-cpp-dev"

test_without_root_and_sudo_the_line_to_type_is_printed_and_nothing_fetched() {
  lacking ninja-build libyaml-cpp-dev
  stub id 'echo 1000'
  run quickstart
  expect_status 1
  expect_said "$install_line"
  expect_said "Type this as root, then call quickstart again"
  expect_no_call apt-get
  [ ! -d "$cache" ] || fail "something was fetched"
}

test_root_installs_only_what_is_missing() {
  lacking ninja-build libyaml-cpp-dev
  start_index
  run quickstart
  expect_status 0
  expect_call "apt-get update"
  expect_call "apt-get install --yes --no-install-recommends ninja-build libyaml-cpp-dev --quiet"
}

test_sudo_that_asks_for_no_password_is_used() {
  lacking ninja-build libyaml-cpp-dev
  stub id 'echo 1000'
  stub sudo "printf 'sudo %s\n' \"\$*\" >>'$sandbox/calls'; [ \"\$1\" != --non-interactive ] || shift; \"\$@\""
  start_index
  run quickstart
  expect_status 0
  expect_call "sudo env DEBIAN_FRONTEND=noninteractive apt-get install"
}

test_the_tests_need_catch2_and_a_virtual_environment_besides() {
  stub dpkg-query 'exit 1'
  run test --dry-run
  expect_status 0
  expect_said "dataset-fashion-mnist catch2 python3 python3-venv zsh"
}

test_a_failing_apt_stops_with_a_message() {
  lacking ninja-build
  stub apt-get 'echo "E: Unable to locate package" >&2; exit 100'
  run quickstart
  expect_status 1
  expect_said "E: Unable to locate package"
  expect_said "apt-get could not install them"
}

test_another_distribution_is_told_what_is_needed_and_goes_on() {
  rm "$sandbox/bin/dpkg-query"
  with=("PATH=$sandbox/bin:$sandbox/tools")
  mkdir "$sandbox/tools"
  local tool
  for tool in env bash dirname basename cat sed awk sort head tail id grep stat df sha256sum nproc readlink; do
    ln -s "$(command -v "$tool")" "$sandbox/tools/$tool"
  done
  run quickstart --dry-run
  expect_status 0
  expect_said "this is no Debian or Ubuntu: make sure that what these packages hold is there: g++ cmake"
}

run_tests
