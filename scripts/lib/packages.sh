# shellcheck shell=bash
# System packages of Debian 12 and 13, Ubuntu 22.04 and 24.04: their names are the same on all four.

build_packages=(
  g++ cmake ninja-build curl ca-certificates
  libyaml-cpp-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libprotozero-dev zlib1g-dev
  dataset-fashion-mnist
)
test_packages=(catch2 python3 python3-venv zsh)

missing_packages() {
  local package
  for package in "$@"; do
    # Not `installed` for an unknown, removed or half-installed package.
    if [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      printf '%s\n' "$package"
    fi
  done
}

# Prints how to become root: nothing, "sudo", or fails where there is no way.
way_to_root() {
  if [ "$(id -u)" = 0 ]; then return; fi
  command -v sudo >/dev/null || return 1
  if ! sudo --non-interactive true 2>/dev/null; then
    # sudo asks for a password: that needs somebody to type it.
    [ -t 0 ] && [ -t 2 ] || return 1
  fi
  printf 'sudo\n'
}

install_packages() {
  local missing=("$@") sudo
  local install="apt-get install --yes --no-install-recommends ${missing[*]}"
  if [ "$dry_run" = yes ]; then
    say "would install as root: apt-get update && $install"
    return
  fi
  sudo=$(way_to_root) || die "these packages are missing, and there is no root and no sudo here to install them:
  ${missing[*]}
Type this as root, then call $script_name again:
  apt-get update && $install"
  step "installing packages: ${missing[*]}"
  # A broken source that has nothing to do with these packages must not stop them.
  ${sudo:+"$sudo"} env DEBIAN_FRONTEND=noninteractive apt-get update --quiet=2 >&2 ||
    say "apt-get update had problems (above); going on with the package lists that are there"
  # shellcheck disable=SC2086 # the command line is made of words
  ${sudo:+"$sudo"} env DEBIAN_FRONTEND=noninteractive $install --quiet=2 >&2 ||
    die "apt-get could not install them (its message is above); when that is mended, call $script_name again"
}

# Installs those of the packages that are missing.
provide_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null; then
    say "this is no Debian or Ubuntu: make sure that what these packages hold is there: $*"
    return
  fi
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -gt 0 ]; then install_packages "${missing[@]}"; fi
}
