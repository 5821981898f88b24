#!/usr/bin/env bash
# Builds the fuzz targets and runs them all, two at a time.
#
#   scripts/fuzz.sh [SECONDS]     together, in wall-clock time (default 240)
#
# A run begins from a fixed seed and from tests/fuzz/corpus/TARGET where that
# exists.  An input that breaks a target is left in build/fuzz/found/, and
# build/fuzz/tests/fuzz/TARGET FILE repeats it.
set -euo pipefail

case ${1-} in
--help | -h)
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 0
  ;;
esac

cd "$(dirname "$0")/.."
seconds=${1-240}
compiler=clang
command -v clang-14 >/dev/null && compiler=clang-14
INFERSTAT_TARGET=tests/fuzz/all scripts/build.sh fuzz "-DCMAKE_C_COMPILER=$compiler" \
  "-DCMAKE_CXX_COMPILER=${compiler/clang/clang++}"

targets=()
for target in build/fuzz/tests/fuzz/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] && targets+=("$target")
done
if [ ${#targets[@]} -eq 0 ]; then
  echo "fuzz: no targets in build/fuzz/tests/fuzz (tests/fuzz/*.cmake lists them)" >&2
  exit 1
fi
rounds=$(((${#targets[@]} + 1) / 2))
each=$((seconds / rounds))
mkdir -p build/fuzz/found
work=$(mktemp -d "${TMPDIR:-/tmp}/inferstat-fuzz.XXXXXX")
pids=()
leave() {
  [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap leave EXIT

# Runs one target; its report ends in $work/NAME.log.
run_target() {
  local name=${1##*/} corpus=()
  mkdir -p "$work/$name"
  [ ! -d "tests/fuzz/corpus/$name" ] || corpus=("tests/fuzz/corpus/$name")
  exec "$1" -seed=1 -max_total_time="$each" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$name-" "$work/$name" "${corpus[@]}" \
    >"$work/$name.log" 2>&1 </dev/null
}

failed=0
wait_for() {
  local name=${2##*/}
  if wait "$1"; then
    printf 'fuzz: %-24s %s executions in %s s, nothing found\n' "$name" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")" "$each"
  else
    failed=1
    tail -n 60 "$work/$name.log" >&2
    printf 'fuzz: %s broke (the input is in build/fuzz/found)\n' "$name" >&2
  fi
}

for ((i = 0; i < ${#targets[@]}; i += 2)); do
  pids=()
  for target in "${targets[@]:i:2}"; do
    (run_target "$target") &
    pids+=($!)
  done
  for index in "${!pids[@]}"; do
    wait_for "${pids[index]}" "${targets[i + index]}"
  done
done
pids=()
[ "$failed" -eq 0 ]
