#!/usr/bin/env bash
# Runs every test and benchmark there is for a CUDA device, and writes one report.
#
#   scripts/gpu_check.sh [--build DIR] [--out DIR] [--quick]
#
#   --build DIR   a build with the CUDA back end (default build/release, made where nvcc
#                 is found); in a bundle of scripts/gpu_bundle.sh its own programs
#   --out DIR     where report.md, report.json and the logs go (default gpu-check-DATE)
#   --quick       shorter benchmarks
#
# Needs a driver, and no network.  Where no device answers it says so and exits 3; 1 where
# a test fails.  compute-sanitizer is used where it is found, CUPTI likewise.  The card's
# settings are left as they are.
set -euo pipefail

say() {
  printf 'gpu_check.sh: %s\n' "$*" >&2
}

root=$(cd "$(dirname "$0")" && pwd)
build=
out=gpu-check-$(date -u +%Y%m%dT%H%M%SZ)
quick=()
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  --build | --out)
    [ -n "${2-}" ] || { say "$1 needs a folder (see --help)"; exit 2; }
    [ "$1" = --build ] && build=$2 || out=$2
    shift 2
    ;;
  --quick)
    quick=(--quick)
    shift
    ;;
  *)
    say "unknown option: $1 (see --help)"
    exit 2
    ;;
  esac
done

# ---- Where the programs are -------------------------------------------------

if [ -z "$build" ] && [ -f "$root/COMMIT" ]; then # a bundle
  commit=$(cat "$root/COMMIT")
  programs=$root/bin
  tests=$root/tests
  benches=$root/bench
  export LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  [ -d "$root/models" ] && export INFERSTAT_TEST_MODELS=$root/models
else
  root=$(cd "$root/.." && pwd)
  commit=$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
  build=${build:-$root/build/release}
  if [ ! -d "$build" ]; then
    command -v nvcc >/dev/null || { say "no build and no nvcc (give --build DIR)"; exit 2; }
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DINFERSTAT_CUDA=ON
    cmake --build "$build" -j"$(nproc)"
  fi
  programs=$build/bin
  tests=$build/tests/unit
  benches=$build/tests/bench
fi
shopt -s nullglob
list=("$tests"/*_gpu)
[ ${#list[@]} -gt 0 ] || { say "$tests: no tests for a GPU there (build with -DINFERSTAT_CUDA=ON)"; exit 2; }

# ---- The device -------------------------------------------------------------

mkdir -p "$out"
out=$(cd "$out" && pwd)
if ! "${list[0]}" >"$out/probe.log" 2>&1; then
  if grep -q '^skipped: ' "$out/probe.log"; then
    say "$(sed -n 's/^skipped: //p' "$out/probe.log"): nothing to check here"
    exit 3
  fi
fi
device=unknown
driver=unknown
if command -v nvidia-smi >/dev/null; then
  device=$(nvidia-smi --query-gpu=name --format=csv,noheader | paste -sd ';')
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
fi
say "$device, driver $driver"

# ---- Tests ------------------------------------------------------------------

failed=0
rows=()  # of the report: what, outcome, seconds
json=()

# check NAME COMMAND...: runs it, keeps its output, and writes down how it ended.
check() {
  local name=$1 began=$SECONDS code=0 outcome=passed
  shift
  "$@" >"$out/$name.log" 2>&1 || code=$?
  if [ "$code" -eq 77 ]; then
    outcome=skipped
  elif [ "$code" -ne 0 ]; then
    outcome="failed with $code"
    failed=1
    tail -n 20 "$out/$name.log" >&2
  fi
  say "$name: $outcome"
  rows+=("| $name | $outcome | $((SECONDS - began)) |")
  json+=("{\"name\": \"$name\", \"outcome\": \"$outcome\", \"seconds\": $((SECONDS - began))}")
}

sanitizer=$(command -v compute-sanitizer || true)
for test in "${list[@]}"; do
  name=$(basename "$test")
  check "$name" "$test"
  if [ -n "$sanitizer" ] && [ "$name" != test_vectors_gpu ]; then
    for tool in memcheck racecheck; do
      check "$name.$tool" "$sanitizer" --tool "$tool" --error-exitcode 1 "$test"
    done
  fi
done

# A run of the real worker: the same text as on the CPU.
model=$(printf '%s\n' "${INFERSTAT_TEST_MODELS-/nowhere}"/stories260K.gguf)
# shellcheck disable=SC2317 # called by check
same_text() {
  local worker=$programs/inferstat-worker
  "$worker" --no-report --device cpu llm --model "$model" --tokens 60 >"$out/text.cpu"
  "$worker" --no-report --device cuda llm --model "$model" --tokens 60 >"$out/text.cuda"
  cmp "$out/text.cpu" "$out/text.cuda"
}
[ -f "$model" ] && check worker_text same_text

# ---- Benchmarks -------------------------------------------------------------

figures=()
for bench in "$benches"/bench_pipeline "$benches"/bench_encode; do
  [ -x "$bench" ] || continue
  name=$(basename "$bench")
  check "$name" "$bench" --device cuda --json "${quick[@]}"
  if [ -s "$out/$name.log" ] && tail -n 1 "$out/$name.log" | grep -q '^{'; then
    figures+=("\"$name\": $(tail -n 1 "$out/$name.log")")
  fi
done

# ---- The report -------------------------------------------------------------

join() {
  local IFS=,
  printf '%s' "$*"
}
printf '{"date": "%s", "commit": "%s", "device": "%s", "driver": "%s", "checks": [%s], "benchmarks": {%s}}\n' \
  "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$commit" "$device" "$driver" "$(join "${json[@]}")" \
  "$(join "${figures[@]-}")" >"$out/report.json"
{
  printf '# GPU check\n\n| | |\n|---|---|\n| date | %s |\n| commit | %s |\n| device | %s |\n| driver | %s |\n' \
    "$(date -u +%Y-%m-%d)" "$commit" "$device" "$driver"
  printf '\n| check | outcome | seconds |\n|---|---|---|\n'
  printf '%s\n' "${rows[@]}"
  for figure in "${figures[@]-}"; do
    [ -z "$figure" ] || printf '\n    %s\n' "$figure"
  done
} >"$out/report.md"
say "$out/report.md"
exit "$failed"
