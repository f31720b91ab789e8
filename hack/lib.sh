# Shared by the scripts in hack/: where things are kept, timed steps with a heartbeat, missing packages.
# Sourced, never run. The sourcing script has `set -euo pipefail`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Everything heavy that outlives a run: control-plane binaries, tools, results. Safe to delete at any time.
export CUSTODY_CACHE="${CUSTODY_CACHE:-$HOME/.cache/custody}"
# Where cargo puts what it builds.
target="${CARGO_TARGET_DIR:-$root/target}"
# Built from source: no registry has a recent binary of it.
deny_version=0.20.2
deny_root="$CUSTODY_CACHE/tools/cargo-deny-$deny_version"

# The controllers of the house: what has a CRD, an image and an end-to-end suite.
controllers=(sample-controller policy-pruner openstack-server-controller)
# What the end-to-end suites and the demo run.
e2e_packages=(-p e2e -p cloud-emulator)
for controller in "${controllers[@]}"; do e2e_packages+=(-p "$controller"); done

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }
# 83 -> 1m23s
span() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

# step NAME COMMAND...: runs a command, keeps its output, notes how long it took and how it ended.
# A failed step does not end the script: the other steps still have something to say. `summary` ends it.
declare -a step_names=() step_seconds=() step_results=()
logs=""
step() {
  local name=$1 began=$SECONDS result=ok
  shift
  new_log
  say "$name"
  with_heartbeat "$name" "$log" "$@" || result=FAILED
  note_step "$name" $((SECONDS - began)) "$result"
}
# Sets `log`: where the output of the next step is kept.
new_log() {
  [ -n "$logs" ] || logs=$(mktemp -d)
  log="$logs/${#step_names[@]}.log"
  : >"$log"
}
# note_step NAME SECONDS RESULT: `summary` tells of it. Fails if the step did.
note_step() {
  step_names+=("$1") step_seconds+=("$2") step_results+=("$3")
  printf '== %s: %s after %s\n' "$1" "$3" "$(span "$2")"
  [ "$3" = ok ]
}

# aside NAME COMMAND...: starts a step that works beside the ones that follow and takes only what they leave of the machine.
# There is one at a time. `join_aside` waits for it and shows what it said. It ends with this script, however that ends.
aside() {
  aside_name=$1 aside_log=$(mktemp)
  local began=$SECONDS
  shift
  say "$aside_name: begins, beside what follows"
  set -m # a process group of its own, to end it whole; the same session, in which the priority counts
  (
    status=0
    nice -n 19 "$@" </dev/null >"$aside_log" 2>&1 || status=$?
    echo $((SECONDS - began)) >"$aside_log.took"
    exit "$status"
  ) &
  aside_group=$!
  set +m
  trap 'kill -TERM -- "-$aside_group" 2>/dev/null || true; rm -f "$aside_log"*' EXIT
}
join_aside() {
  local result=ok took
  new_log
  say "$aside_name: what it said"
  with_heartbeat "$aside_name" "$log" tail --pid="$aside_group" -n +1 -f "$aside_log"
  wait "$aside_group" || result=FAILED
  took=$(cat "$aside_log.took" 2>/dev/null || echo 0) # none if it was killed
  trap - EXIT
  rm -f "$aside_log"*
  note_step "$aside_name" "$took" "$result"
}

# with_heartbeat NAME LOG COMMAND...: says every half minute of silence that the command is still at work.
with_heartbeat() {
  local name=$1 log=$2 pulse status=0
  shift 2
  # The heart reads what nobody but this shell holds open, and so ends with it, however that ends.
  exec {pulse}> >(heart "$name" "$log" "$SECONDS")
  "$@" </dev/null 2>&1 {pulse}>&- | tee "$log" {pulse}>&- || status=$?
  exec {pulse}>&-
  return "$status"
}
heart() {
  local name=$1 log=$2 began=$3 seen=0 now ended
  while :; do
    ended=0
    read -r -t 30 _ || ended=$?
    [ "$ended" -gt 128 ] || return 0 # not the time-out: the other end is gone
    now=$(stat -c %s "$log" 2>/dev/null || echo 0)
    [ "$now" != "$seen" ] || printf '   ... %s: still at work, %s so far\n' "$name" "$(span $((SECONDS - began)))"
    seen=$now
  done
}

# Prints the table of steps. Some may have been at work side by side: the total is the time that went by.
times() {
  local i
  printf '\n%-34s %10s  %s\n' step time result
  for i in "${!step_names[@]}"; do
    printf '%-34s %10s  %s\n' "${step_names[$i]}" "$(span "${step_seconds[$i]}")" "${step_results[$i]}"
  done
  printf '%-34s %10s\n\n' total "$(span "$SECONDS")"
}

# Prints the table of steps and `N passed, N failed`: every test that cargo ran, and every step that is a check by itself.
summary() {
  local i passed=0 failed=0 p f
  times
  for i in "${!step_names[@]}"; do
    read -r p f < <(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$logs/$i.log")
    if [ "${step_results[$i]}" != ok ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$p" = 0 ] && [ "$f" = 0 ]; then p=1; fi
    passed=$((passed + p)) failed=$((failed + f))
  done
  rm -rf "$logs"
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" = 0 ]
}
# need_packages NAME...: installs Debian packages that are missing, and says so.
need_packages() {
  local missing=() package as_root=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "please install as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  echo "installing Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# e2e_build [FLAGS]: the binaries that run end to end. e2e_with COMMAND...: a command beside a running control plane.
e2e_build() { cargo build --locked "${e2e_packages[@]}" --bins "$@"; }
e2e_with() { "$target/debug/e2e-controlplane" with -- "$@"; }

# seen_e2e SUITE TEST: runs end-to-end tests by name for hack/verify. They print `SEEN: ...` lines with their figures; none matching is a failure.
seen_e2e() {
  local log status=0
  log=$(mktemp)
  hack/e2e "$1" "$2" --nocapture 2>&1 | tee "$log" || status=$?
  grep -q '^SEEN: ' "$log" || sed -n 's/^test result: \(.*\) passed;.*/SEEN: \1 passed/p' "$log"
  grep -qE '^test result: ok\. [1-9]' "$log" || status=1
  rm -f "$log"
  return "$status"
}
