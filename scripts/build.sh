#!/usr/bin/env bash
# Configures and builds a preset into build/PRESET, quietly unless it fails.
#
#   scripts/build.sh [PRESET [CMAKE-OPTION]...]     for example:
#   scripts/build.sh release
#   scripts/build.sh asan -DINFERSTAT_WERROR=ON
#
# INFERSTAT_TARGET names what to build, with spaces between (default: all).  On a terminal
# it shows how far it is.
set -euo pipefail

case ${1-} in
--help | -h)
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 0
  ;;
esac

cd "$(dirname "$0")/.."
preset=${1-release}
shift || true

log=$(mktemp "${TMPDIR:-/tmp}/inferstat-build.XXXXXX")
trap 'rm -f "$log"' EXIT
show_failure() {
  grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Generating)' "$log" >&2 || true
  printf 'build: %s failed (the lines above say where)\n' "$1" >&2
  exit 1
}

# On a terminal the last step stands in one line; otherwise nothing is said.
show_progress() {
  local line
  [ -t 2 ] || { cat >/dev/null; return; }
  while IFS= read -r line; do
    case $line in "["*/*"]"*) printf '\r\033[K%s' "${line:0:79}" >&2 ;; esac
  done
  printf '\r\033[K' >&2
}

printf 'build: %s into build/%s\n' "$preset" "$preset"
cmake --preset "$preset" "$@" >"$log" 2>&1 || show_failure "configuring $preset"
read -ra targets <<<"${INFERSTAT_TARGET:-all}"
cmake --build --preset "$preset" --target "${targets[@]}" 2>&1 | tee "$log" | show_progress ||
  show_failure "building $preset"
sed -n '/warning:/p' "$log" >&2
