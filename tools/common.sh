# Sourced by the other scripts, not run by itself.
# shellcheck shell=bash

# step WHAT COMMAND...: says what it does, does it, and says how long it took.
step() {
  local what=$1 start=$SECONDS
  shift
  printf '\n== %s\n' "$what"
  "$@"
  printf '== %s: done in %d s\n' "$what" "$((SECONDS - start))"
}
