# shellcheck shell=bash
# The virtual environment with the Python packages that tests read our files with.

python_lock=$root_dir/scripts/lock/python-tests.txt

# Debian's venv package belongs to the system's Python, which another one on PATH may hide.
find_python() {
  if [ -x /usr/bin/python3 ]; then printf '/usr/bin/python3\n'; else command -v python3; fi
}

# Provides the environment and puts its interpreter into test_python.
test_python=''

provide_python() {
  local python version key folder making=$cache_dir/python/.making
  # In a dry run on a bare machine there is no Python to ask yet.
  python=$(find_python) || { say "would make a Python environment from scripts/lock/python-tests.txt"; return; }
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if ! version_at_least "$version" 3.10 || version_at_least "$version" 3.14; then
    die "$python is Python $version; scripts/lock/python-tests.txt serves 3.10 to 3.13"
  fi
  key=$(sha256sum "$python_lock")
  folder=$cache_dir/python/tests-$version-${key:0:12}
  test_python=$folder/bin/python
  # A system upgrade may have taken away the interpreter that the environment links to.
  if [ -x "$test_python" ]; then return; fi
  if [ "$dry_run" = yes ]; then
    say "would make the Python environment $folder from scripts/lock/python-tests.txt"
    return
  fi
  hold 8 "$cache_dir/lock" "set-up"
  if [ ! -x "$test_python" ]; then
    step "making the Python environment of the tests in $folder"
    rm -rf "$making" "$folder"
    mkdir -p "$cache_dir/python"
    "$python" -m venv "$making" >&2
    "$making/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
      --require-hashes --requirement "$python_lock" >&2 ||
      die "pip could not install the packages of scripts/lock/python-tests.txt (its message is above).
  Nothing half-made is left; call $script_name again when that is mended."
    mv "$making" "$folder"
  fi
  release 8
}
