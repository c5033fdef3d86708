# Sourced by the other scripts, not run by itself.
# shellcheck shell=bash

# With TEPAL_DRY_RUN=1 nothing is done: steps show their commands.
dry_run() { [[ -n ${TEPAL_DRY_RUN:-} ]]; }

# step WHAT COMMAND...: says what it does, does it, and says how long it took.
step() {
  local what=$1 start=$SECONDS
  shift
  printf '\n== %s\n' "$what"
  if dry_run; then
    printf '+ %s\n' "$*"
    return
  fi
  "$@"
  printf '== %s: done in %d s\n' "$what" "$((SECONDS - start))"
}
