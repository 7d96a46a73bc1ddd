#!/usr/bin/env bash
# Runs every test of the scripts, the files side by side, and names those that failed at the end.
set -uo pipefail

cd "$(dirname "$0")"
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT

declare -A running
for file in *_test.sh; do
  bash "$file" >"$output/$file" 2>&1 &
  running[$file]=$!
done

failed=()
for file in *_test.sh; do
  wait "${running[$file]}" || failed+=("$file")
  printf '%s\n' "$file"
  cat "$output/$file"
done
if [ "${#failed[@]}" -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
