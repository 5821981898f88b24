#!/usr/bin/env bash
# Runs every test and benchmark there is for a CUDA device, and writes one report: tests of
# its kernels, encodings and texts of the real worker, and what the pipeline carries.
#
#   scripts/gpu_check.sh [--build DIR] [--out DIR] [--quick]
#
#   --build DIR   a build with the CUDA back end (default build/release, made where nvcc
#                 is found); in a bundle of scripts/gpu_bundle.sh its own programs
#   --out DIR     where report.md, report.json and the logs go (default gpu-check-DATE)
#   --quick       shorter benchmarks
#
# Needs a driver, and no network.  Where no device answers it says so and exits 3; 1 where
# a test fails.  compute-sanitizer is used where it is found.  The card's settings are left
# as they are.
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
  build=$root
  tests=$root/tests
  bench=$root/bench_pipeline.sh
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
  tests=$build/tests/unit
  bench=$root/scripts/bench_pipeline.sh
fi
worker=$build/bin/inferstat-worker
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

# Runs of the real worker: through the pipeline to what the reference says, and the same
# text as on the CPU.  Each step says itself that it failed: called by check, nothing stops
# at an error.
# shellcheck disable=SC2317 # called by check
same_states() {
  local encoder type from
  for encoder in amplitude angle basis phase iqp-z iqp; do
    for type in f64 f32; do
      for from in generator pageable pinned; do
        "$worker" --no-report --device cuda encode --encoder "$encoder" --type "$type" --from "$from" \
          --qubits 12 --batch-size 20 --batches 10 --check || return 1
      done
    done
  done
}
check worker_encode same_states

model=${INFERSTAT_TEST_MODELS-/nowhere}/stories260K.gguf
# shellcheck disable=SC2317 # called by check
same_text() {
  "$worker" --no-report --device cpu llm --model "$model" --tokens 60 >"$out/text.cpu" &&
    "$worker" --no-report --device cuda llm --model "$model" --tokens 60 >"$out/text.cuda" &&
    [ -s "$out/text.cpu" ] && cmp "$out/text.cpu" "$out/text.cuda"
}
if [ -f "$model" ]; then check worker_text same_text; fi

# ---- Benchmarks -------------------------------------------------------------

# Beside a bare loop of copies, in one process.
copies=null
check pipeline_copies "$build/tests/bench/bench_pipeline" --device cuda --json "${quick[@]}"
if tail -n 1 "$out/pipeline_copies.log" | grep -q '^{.*}$'; then
  copies=$(tail -n 1 "$out/pipeline_copies.log")
fi

reports=()
# measure ENCODER ARGUMENT...: the pipeline before and after, with samples from pinned memory.
measure() {
  local name=pipeline_$1
  check "$name" "$bench" --build "$build" --device cuda --encoder "$@" "${quick[@]}" --out "$out/$name"
  [ ! -s "$out/$name/report.md" ] || reports+=("$out/$name/report.md")
}
measure amplitude --qubits "12 16 20" --batch "64 256" --prefetch 16
measure iqp --qubits "12 16 20" --batch 64 --prefetch 16

# ---- The report -------------------------------------------------------------

join() {
  local IFS=,
  printf '%s' "$*"
}

# The cells of all benchmarks as objects; an empty one is null, and words are in quotes.
cells() {
  local report
  for report in "${reports[@]}"; do
    awk -F, -v name="$(basename "$(dirname "$report")")" '
      NR == 1 { for (i = 1; i <= NF; i++) keys[i] = $i; next }
      {
        printf "%s{\"benchmark\": \"%s\"", (NR > 2 ? "," : ""), name
        for (i = 1; i <= NF; i++) {
          value = $i == "" ? "null" : keys[i] == "sync" ? "\"" $i "\"" : $i
          printf ", \"%s\": %s", keys[i], value
        }
        printf "}"
      }
      END { if (NR > 1) printf "\n" }' "$(dirname "$report")/cells.csv"
  done | paste -sd ,
}

printf '{"date": "%s", "commit": "%s", "device": "%s", "driver": "%s", "checks": [%s], "copies": %s, "benchmarks": [%s]}\n' \
  "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$commit" "$device" "$driver" "$(join "${json[@]}")" \
  "$copies" "$(cells)" >"$out/report.json"
{
  printf '# GPU check\n\n| | |\n|---|---|\n| date | %s |\n| commit | %s |\n| device | %s |\n| driver | %s |\n' \
    "$(date -u +%Y-%m-%d)" "$commit" "$device" "$driver"
  printf '\n| check | outcome | seconds |\n|---|---|---|\n'
  printf '%s\n' "${rows[@]}"
  printf '\n    %s\n' "$copies"
  for report in "${reports[@]}"; do
    printf '\n'
    sed 's/^#/##/' "$report"
  done
} >"$out/report.md"
say "$out/report.md"
exit "$failed"
