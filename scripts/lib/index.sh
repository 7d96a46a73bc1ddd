# shellcheck shell=bash
# Looks files up on a Python package index (the "simple" pages, PEP 503).

index_url=${PIP_INDEX_URL:-https://pypi.org/simple}
index_url=${index_url%/}
retry_delay_seconds=${GPUTRAIN_RETRY_DELAY:-2}

# PIP_INDEX_URL may carry a password: messages show the host alone.
index_host() {
  local rest=${index_url#*://}
  rest=${rest%%/*}
  printf '%s\n' "${rest##*@}"
}

# The page of one package, as HTML.
index_page() {
  local try page
  for try in 1 2 3; do
    if page=$(curl --fail --silent --show-error --location --connect-timeout 20 --max-time 120 \
      --header 'Accept: text/html' "$index_url/$1/"); then
      printf '%s\n' "$page"
      return
    fi
    [ "$try" = 3 ] || sleep "$retry_delay_seconds"
  done
  return 1
}

# Reads a page on standard input, prints the link (with its #sha256=…) of the file $1.
# The name in a link may be percent-encoded, the name between the tags is not.
link_on_page() {
  { grep -F ">$1<" || true; } | sed -n 's/.*href="\([^"]*\)".*/\1/p' | sed 's/&amp;/\&/g' | head -n 1
}

# A link of the page of package $1 as a full address.
absolute_link() {
  local package=$1 link=$2 scheme rest
  case $link in
    *://*) printf '%s\n' "$link" ;;
    /*)
      scheme=${index_url%%://*}
      rest=${index_url#*://}
      printf '%s://%s%s\n' "$scheme" "${rest%%/*}" "$link"
      ;;
    *) printf '%s/%s/%s\n' "$index_url" "$package" "$link" ;;
  esac
}
