# shellcheck shell=bash
# Sets of wheels: downloaded, checked, unpacked and laid side by side in the cache.
#
#   downloads/FILE.part   a download under way; the next call goes on where it stopped
#   downloads/FILE        whole, its hash checked, not unpacked yet; removed once it is
#   wheels/NAME           one wheel, unpacked; there as a whole or not at all
#   sets/SET-KEY          hard links to the wheels of one set, as LibTorch's RPATHs expect them:
#                         torch/ and nvidia/ side by side; there as a whole or not at all
#
# A folder under a final name is whole, because it was made under a temporary one and renamed. The
# lock of the cache makes one fixed temporary name enough: what is found under it is left from a
# call that was killed.

lock_list=${GPUTRAIN_LOCK_LIST:-$root_dir/scripts/lock/wheels.txt}
download_tries=5

# The lock lines of the sets named, without the column of sets: package version file size hash.
wheels_of() {
  awk -v wanted=" $* " '
    /^#/ || NF == 0 { next }
    {
      count = split($1, sets, ",")
      for (i = 1; i <= count; i++)
        if (index(wanted, " " sets[i] " ")) { print $2, $3, $4, $5, $6; next }
    }' "$lock_list"
}

wheel_folder() {
  local package=$1 version=$2 hash=$3
  printf '%s\n' "$cache_dir/wheels/$package-$version-${hash:0:12}"
}

# The folder of a set. $1 its name, $2 what else it depends on besides its wheels (may be empty),
# the rest the names in the lock file whose wheels it holds.
set_folder() {
  local name=$1 extra=$2 key
  shift 2
  key=$({ wheels_of "$@"; printf '%s\n' "$extra"; } | sha256sum)
  printf '%s\n' "$cache_dir/sets/$name-${key:0:12}"
}

file_size() {
  if [ -f "$1" ]; then stat --format=%s "$1"; else printf '0\n'; fi
}

# The wheels of the sets named that are not unpacked yet.
wheels_to_unpack() {
  local package version file size hash
  wheels_of "$@" | while read -r package version file size hash; do
    [ -d "$(wheel_folder "$package" "$version" "$hash")" ] ||
      printf '%s %s %s %s %s\n' "$package" "$version" "$file" "$size" "$hash"
  done
}

# Bytes still to be downloaded for the lines of `wheels_to_unpack` on standard input.
bytes_to_download() {
  local package version file size hash total=0
  while read -r package version file size hash; do
    [ -f "$cache_dir/downloads/$file" ] && continue
    total=$((total + size - $(file_size "$cache_dir/downloads/$file.part")))
  done
  printf '%s\n' "$total"
}

# $1: what was being fetched.
stop_without_network() {
  die "cannot fetch $1 from $(index_host).
  Is there a network? Behind a mirror or a proxy, set PIP_INDEX_URL or https_proxy.
  Nothing is lost: call $script_name again and it continues where it stopped."
}

# Prints the address of a wheel.
wheel_url() {
  local package=$1 file=$2 page link
  page=$(index_page "$package") || stop_without_network "the page of $package (for $file)"
  link=$(link_on_page "$file" <<<"$page")
  [ -n "$link" ] || die "$file is not on the page of $package at $(index_host).
  scripts/lock/wheels.txt names it; is PIP_INDEX_URL a whole mirror of the Python package index?"
  absolute_link "$package" "${link%%#*}"
}

# One try at the rest of a file.
fetch_rest() {
  local url=$1 part=$2 bar=--silent status=0
  if [ -t 2 ]; then bar=--progress-bar; fi
  curl --fail --location --show-error "$bar" --connect-timeout 20 --speed-limit 1000 --speed-time 60 \
    --continue-at - --output "$part" "$url" >&2 || status=$?
  # 33: the server cannot continue a file, so it has to come as a whole.
  if [ "$status" = 33 ]; then rm -f "$part"; fi
  return "$status"
}

# Fetches a file until it has its full size; tries without any progress are counted.
fetch_all() {
  local url=$1 part=$2 size=$3 tries=0 before
  while [ "$(file_size "$part")" -lt "$size" ]; do
    before=$(file_size "$part")
    if fetch_rest "$url" "$part"; then continue; fi
    if [ "$(file_size "$part")" -gt "$before" ]; then tries=0; else tries=$((tries + 1)); fi
    [ "$tries" -lt "$download_tries" ] || return 1
    sleep "$retry_delay_seconds"
  done
}

# Makes sure that downloads/FILE is there and is the file that the lock names.
download_wheel() {
  local package=$1 file=$2 size=$3 hash=$4 url found
  local whole=$cache_dir/downloads/$file
  local part=$whole.part
  if [ -f "$whole" ]; then return; fi
  if [ "$(file_size "$part")" -lt "$size" ]; then
    url=$(wheel_url "$package" "$file")
    if [ -f "$part" ]; then
      say "    $file: continuing at $(human_bytes "$(file_size "$part")") of $(human_bytes "$size")"
    else
      say "    $file: $(human_bytes "$size")"
    fi
    fetch_all "$url" "$part" "$size" || stop_without_network "$file"
  fi
  found=$(sha256sum "$part")
  found=${found%% *}
  if [ "$found" != "$hash" ]; then
    rm -f "$part"
    die "$file is not the file that scripts/lock/wheels.txt names:
  expected SHA-256 $hash
  found    SHA-256 $found
  The download was removed; call $script_name again to fetch it anew. If that ends the same way,
  $(index_host) or a proxy on the way to it hands out another file: do not use it."
  fi
  mv "$part" "$whole"
}

# Unpacks a downloaded wheel into the store; of torch only what C++ needs.
unpack_wheel() {
  local package=$1 file=$2 folder=$3
  local making=$cache_dir/wheels/.making parts=()
  if [ "$package" = torch ]; then parts=(torch/include torch/lib torch/share torch/version.py); fi
  rm -rf "$making"
  mkdir -p "$making"
  (cd "$making" && cmake -E tar xf "$cache_dir/downloads/$file" "${parts[@]}") ||
    die "cannot unpack $file into $cache_dir/wheels; is the disk full? ($(free_space))"
  mv "$making" "$folder"
  rm -f "$cache_dir/downloads/$file"
}

free_bytes() {
  df --output=avail --block-size=1 "$cache_dir" | tail -n 1
}

free_space() {
  printf '%s free\n' "$(human_bytes "$(free_bytes)")"
}

# Unpacked, wheels take about twice their size.
check_space() {
  local needed=$(($1 * 2)) free
  free=$(free_bytes)
  [ "$free" -ge "$needed" ] || die "$cache_dir needs about $(human_bytes "$needed") more, $(human_bytes "$free") are free.
  Free some space there, or set XDG_CACHE_HOME to a folder on a larger disk."
}

# The compiler wheels lack what nvcc and CMake look for: plain names beside lib*.so.N, and lib64.
complete_toolkit() {
  local folder=$1 library plain
  ln -sfn lib "$folder/lib64"
  for library in "$folder"/lib/lib*.so.*; do
    plain=${library%%.so.*}.so
    [ -e "$plain" ] || ln -s "$(basename "$library")" "$plain"
  done
}

# Links the libraries of an installed toolkit to where LibTorch's RPATHs look for them.
link_toolkit() {
  local folder=$1 directory library
  shift
  mkdir -p "$folder/lib"
  for directory in "$@"; do
    for library in "$directory"/libcu*.so* "$directory"/libnv*.so* "$directory"/libnccl.so*; do
      [ -e "$library" ] || continue
      [ -e "$folder/lib/$(basename "$library")" ] || ln -s "$library" "$folder/lib/"
    done
  done
}

# Makes the folder of a set from unpacked wheels. $1 folder, $2 library folders of a toolkit to link
# (separated by colons, may be empty), the rest the names in the lock file.
assemble_set() {
  local folder=$1 linked=$2 package version file size hash directories
  local making=$cache_dir/sets/.making
  shift 2
  rm -rf "$making"
  mkdir -p "$making"
  wheels_of "$@" | while read -r package version file size hash; do
    # Several wheels may bring the same file of no weight (nvidia/__init__.py): one is enough.
    cp --archive --link --force "$(wheel_folder "$package" "$version" "$hash")/." "$making/"
  done
  if [ -x "$making/nvidia/cu13/bin/nvcc" ]; then complete_toolkit "$making/nvidia/cu13"; fi
  if [ -n "$linked" ]; then
    IFS=: read -r -a directories <<<"$linked"
    link_toolkit "$making/nvidia/cu13" "${directories[@]}"
  fi
  mv "$making" "$folder"
}

# Downloads, unpacks and assembles what is missing of a set. Arguments as for assemble_set.
provide_set() {
  local folder=$1 linked=$2 missing bytes package version file size hash
  shift 2
  if [ -d "$folder" ]; then return; fi
  missing=$(wheels_to_unpack "$@")
  bytes=$(bytes_to_download <<<"$missing")
  if [ "$dry_run" = yes ]; then
    say_downloads "$missing" "$bytes" "$folder"
    return
  fi
  mkdir -p "$cache_dir/downloads" "$cache_dir/wheels" "$cache_dir/sets"
  hold 8 "$cache_dir/lock" "set-up"
  # The one that was waited for may have made it.
  missing=$(wheels_to_unpack "$@")
  bytes=$(bytes_to_download <<<"$missing")
  if [ -n "$missing" ]; then
    step "fetching $(wc -l <<<"$missing") wheels, $(human_bytes "$bytes"), from $(index_host) into $cache_dir"
    check_space "$bytes"
    while read -r package version file size hash; do
      download_wheel "$package" "$file" "$size" "$hash"
      unpack_wheel "$package" "$file" "$(wheel_folder "$package" "$version" "$hash")"
    done <<<"$missing"
  fi
  [ -d "$folder" ] || assemble_set "$folder" "$linked" "$@"
  release 8
}

say_downloads() {
  local missing=$1 bytes=$2 folder=$3 package version file size hash
  if [ -n "$missing" ]; then
    say "would fetch $(human_bytes "$bytes") from $(index_host):"
    while read -r package version file size hash; do
      say "    $file ($(human_bytes "$size"))"
    done <<<"$missing"
  fi
  say "would unpack into $folder"
}
