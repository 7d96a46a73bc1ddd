# shellcheck shell=bash
# Asks the program, so that it fits the version installed.
eval "$(gputrain completion bash)"
