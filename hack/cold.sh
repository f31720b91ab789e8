# For checks that start from nothing: a fresh clone, no cache, no compiled Go or Rust. Downloads of crates and modules are kept:
# they measure the network. Sourced, never run.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# cold COMMAND...: runs it in such a clone; sets `took` (seconds) and `cold_log`.
cold() {
  local began=$SECONDS
  cold_place=$(mktemp -d)
  cold_log="$cold_place/log"
  trap 'chmod -R u+w "$cold_place"; rm -rf "$cold_place"' EXIT
  git clone --quiet "$root" "$cold_place/clone"
  (
    cd "$cold_place/clone"
    unset CARGO_TARGET_DIR
    export CUSTODY_CACHE="$cold_place/cache" GOCACHE="$cold_place/go-build"
    "$@" </dev/null
  ) 2>&1 | tee "$cold_log"
  took=$((SECONDS - began))
  # Everything that was started has this path in its arguments.
  if pgrep -af -- "$cold_place/"; then fail "processes are left behind"; fi
  # A machine without a control plane has one now.
  if [ ! -e "$CUSTODY_CACHE/controlplane" ] && [ -e "$cold_place/cache/controlplane" ]; then
    mkdir -p "$CUSTODY_CACHE"
    mv "$cold_place/cache/controlplane" "$CUSTODY_CACHE/"
  fi
}
