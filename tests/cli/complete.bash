# bash complete.bash SCRIPT WORD...: completes the last word with the script, as bash would after these words.
# Prints what bash would offer, a line each.
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_gputrain
printf '%s\n' "${COMPREPLY[@]}"
