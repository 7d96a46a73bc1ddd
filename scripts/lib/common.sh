# shellcheck shell=bash
# What every script here shares: messages, errors, locks, dry runs.

set -euo pipefail

root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
script_name=$(basename "$0")
cache_dir=${XDG_CACHE_HOME:-${HOME:?is not set; give XDG_CACHE_HOME instead}/.cache}/gputrain
# Relative to where the script was called, not to where its steps run.
if [[ $cache_dir != /* ]]; then cache_dir=$PWD/$cache_dir; fi

# Files of the system are looked up below this folder; only tests set it.
probe_root=${GPUTRAIN_PROBE_ROOT:-}

dry_run=no

say() {
  printf '%s\n' "$*" >&2
}

step() {
  say "==> $*"
}

die() {
  say "$script_name: $*"
  exit 1
}

# The words of a command so that they can be pasted into a shell.
quoted() {
  local words=() word
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]]; then
      words+=("$word")
    else
      words+=("'${word//\'/\'\\\'\'}'")
    fi
  done
  printf '%s\n' "${words[*]}"
}

human_bytes() {
  awk -v bytes="$1" 'BEGIN {
    if (bytes >= 1e9) printf "%.1f GB\n", bytes / 1e9
    else if (bytes >= 1e6) printf "%.0f MB\n", bytes / 1e6
    else printf "%.0f kB\n", bytes / 1e3
  }'
}

# Holds the lock file $2 on descriptor $1 until `release $1` or the end of the process.
# Children inherit it: a download that outlives its killed parent still keeps others away.
hold() {
  local descriptor=$1 file=$2 what=$3
  mkdir -p "$(dirname "$file")"
  eval "exec $descriptor>\"\$file\""
  if ! flock --nonblock "$descriptor"; then
    say "another $what is going on ($file); waiting for it to end"
    flock "$descriptor"
  fi
}

release() {
  eval "exec $1>&-"
}
