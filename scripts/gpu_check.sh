#!/usr/bin/env bash
# Runs every test and benchmark there is for a CUDA device, and writes one report: tests of
# its kernels, encodings and texts of the real worker, and how near encoders, copies and the
# pipeline come to what the device itself reaches.
#
#   scripts/gpu_check.sh [--build DIR] [--out DIR] [--parts LIST] [--quick]
#
#   --build DIR   a whole build with the CUDA back end (default build/release, which
#                 scripts/build.sh is asked to finish first); in a bundle of
#                 scripts/gpu_bundle.sh its own programs
#   --out DIR     where report.md, report.json and the logs go (default gpu-check-DATE)
#   --parts LIST  some of tests, sanitizer, device, pipeline and llm (default "tests
#                 sanitizer device pipeline llm")
#   --quick       small benchmarks, to see that they work: what they say is no figure
#
# Needs a driver, and no network.  Where no device answers it says so and exits 3; 1 where
# a test fails, 2 where there is nothing to run.  compute-sanitizer, and PyTorch with CUDA
# to compare with, are used where they are found.  The card's settings are left as they are.
# A goal that is missed is in the report; it fails nothing.
#
# report.json is one object, whose keys stay:
#   format      1; a change of what follows counts it up
#   date, commit, device, driver
#   emulated    true: the CUDA runtime was emulated on a CPU, and no time means anything
#   quick       whether it was asked for
#   checks      name, outcome (passed, skipped, "failed with CODE") and seconds of each
#   goals       name, value, goal, bound (least or most) and verdict (reached, missed) of each
#   encode      what bench_device --json printed; null where it did not run, as the next four
#   copies      bench_pipeline --json
#   timeline    test_cupti_gpu: the overlap timeline beside CUPTI's records
#   torch       bench_torch_encode.py
#   llm         the worker's own figures of the same text on each device
#   benchmarks  the cells of scripts/bench_pipeline.sh, with the name of their benchmark
set -euo pipefail

say() {
  printf 'gpu_check.sh: %s\n' "$*" >&2
}

usage_error() {
  say "$* (see --help)"
  exit 2
}

root=$(cd "$(dirname "$0")" && pwd)
build=
out=gpu-check-$(date -u +%Y%m%dT%H%M%SZ)
parts="tests sanitizer device pipeline llm"
quick=()
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  --build | --out | --parts)
    [ -n "${2-}" ] || usage_error "$1 needs a value"
    case $1 in
    --build) build=$2 ;;
    --out) out=$2 ;;
    --parts) parts=${2//,/ } ;;
    esac
    shift 2
    ;;
  --quick)
    quick=(--quick)
    shift
    ;;
  *) usage_error "unknown option: $1" ;;
  esac
done
for part in $parts; do
  case $part in
  tests | sanitizer | device | pipeline | llm) ;;
  *) usage_error "--parts: '$part' is none of tests, sanitizer, device, pipeline, llm" ;;
  esac
done
[ -n "${parts// /}" ] || usage_error "--parts: none is named"

wanted() { # PART
  case " $parts " in *" $1 "*) ;; *) return 1 ;; esac
}

# ---- Where the programs are -------------------------------------------------

scripts=$root
if [ -z "$build" ] && [ -f "$root/COMMIT" ]; then # a bundle
  commit=$(cat "$root/COMMIT")
  build=$root
  tests=$root/tests
  rest="the bundle is not whole: make another one with scripts/gpu_bundle.sh"
  export LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  [ -d "$root/models" ] && export INFERSTAT_TEST_MODELS=$root/models
else
  root=$(cd "$root/.." && pwd)
  commit=$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
  if [ -z "$build" ]; then
    build=$root/build/release
    say "building all of inferstat with its CUDA back end: many minutes the first time, then seconds"
    "$scripts/build.sh" release >&2 || { say "no build to check"; exit 2; }
  fi
  [ -d "$build" ] || usage_error "--build: $build: no such folder"
  tests=$build/tests/unit
  rest="build all of it, where nvcc is found: scripts/build.sh release -DINFERSTAT_CUDA=ON"
fi
worker=$build/bin/inferstat-worker
for program in "$worker" "$build/bin/inferstatd" "$build"/tests/bench/bench_{device,pipeline}; do
  [ -x "$program" ] || { say "$program: not there ($rest)"; exit 2; }
done
shopt -s nullglob
list=("$tests"/*_gpu)
[ ${#list[@]} -gt 0 ] || { say "$tests: no tests for a GPU there ($rest)"; exit 2; }

# ---- The device -------------------------------------------------------------

mkdir -p "$out"
out=$(cd "$out" && pwd)
if ! "$worker" --version >"$out/probe.log" 2>&1; then
  say "$worker does not start here: $(head -n 1 "$out/probe.log")"
  exit 2
fi
# open_device DEVICE: the smallest thing that has to open it.
open_device() {
  "$worker" --no-report --device "$1" encode --encoder basis --qubits 1 --batch-size 1 --batches 1 \
    >"$out/probe.log" 2>&1
}
# What else is wrong, tests say.
if ! open_device cuda && grep -q 'no device answers' "$out/probe.log"; then
  say "$(sed -n 's/^.*\(no device answers.*\)$/\1/p' "$out/probe.log" | head -n 1): nothing to check here"
  exit 3
fi

# figure NAME FILE: that number of a JSON object of one line; nothing where there is none.
figure() {
  sed -n "s/.*\"$1\": \(-\{0,1\}[0-9][0-9.e+-]*\)[,}].*/\1/p" "$2"
}

word() {
  sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$2"
}

# object FILE: the last of its lines that is an object; null where none is.
object() {
  local last=
  [ ! -s "$1" ] || last=$(sed -n '/^{.*}$/p' "$1" | tail -n 1)
  printf '%s' "${last:-null}"
}

device=unknown
driver=unknown
# nvidia-smi knows cards; which of them are to be used, or which part, the runtime alone does.
devices=2
if ! open_device cuda:1 && grep -q 'numbered from 0' "$out/probe.log"; then devices=1; fi
if command -v nvidia-smi >/dev/null; then
  if said=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>>"$out/probe.log"); then
    device=$(sed 's/, [^,]*$//; s/["\\]//g' <<<"$said" | paste -sd ';')
    driver=$(sed -n '1s/.*, //; 1s/["\\]//g; 1p' <<<"$said")
  else
    say "nvidia-smi fails: $(head -n 1 <<<"$said")"
  fi
fi
emulated=false
"$build/tests/bench/bench_device" --device cuda --quick --json >"$out/device.json" 2>>"$out/probe.log" || true
product=$(word product "$out/device.json")
case $product in
"Emulated device"*)
  emulated=true
  device=$product
  driver=$(word driver "$out/device.json")
  ;;
?*) if [ "$devices" -eq 1 ] || [ "$device" = unknown ]; then device=$product; fi ;;
esac
rm -f "$out/device.json"
say "$device, driver $driver"
[ "$emulated" = false ] || say "emulated on a CPU: no time below means anything"

# ---- Checks -----------------------------------------------------------------

failed=0
rows=()  # of the report: what, outcome, seconds
json=()
goal_rows=()
goal_json=()
reports=()

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

# goal NAME VALUE least|most GOAL: writes down whether it was reached; nothing where there
# is no value.
goal() {
  local verdict
  [ -n "$2" ] || return 0
  verdict=$(awk -v v="$2" -v bound="$3" -v g="$4" \
    'BEGIN { print (bound == "least" ? v + 0 >= g + 0 : v + 0 <= g + 0) ? "reached" : "missed" }')
  goal_rows+=("| $1 | $2 | at $3 $4 | $verdict |")
  goal_json+=("{\"name\": \"$1\", \"value\": $2, \"goal\": $4, \"bound\": \"$3\", \"verdict\": \"$verdict\"}")
}

# shellcheck disable=SC2317 # called by check
no_sanitizer() {
  echo 'compute-sanitizer is not there'
  return 77
}
sanitizer=$(command -v compute-sanitizer || true)
if wanted sanitizer && [ -z "$sanitizer" ]; then check sanitizer no_sanitizer; fi
for test in "${list[@]}"; do
  name=$(basename "$test")
  if wanted tests; then check "$name" "$test"; fi
  # Texts take too long under it, and two tools that trace do not run at once.
  case $name in test_vectors_gpu | test_cupti_gpu) continue ;; esac
  if wanted sanitizer && [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck; do
      check "$name.$tool" "$sanitizer" --tool "$tool" --error-exitcode 1 "$test"
    done
  fi
done
goal timeline_to_cupti_error "$(figure timeline_to_cupti_error <(object "$out/test_cupti_gpu.log"))" most 0.01

# Runs of the real worker: through the pipeline to what the reference says, and the same
# text as on the CPU.  Each step says itself that it failed: called by check, nothing stops
# at an error.
# shellcheck disable=SC2317 # called by check
same_states() { # DEVICE
  local encoder type from size=(--qubits 12 --batch-size 20 --batches 10)
  if [ ${#quick[@]} -gt 0 ]; then size=(--qubits 5 --batch-size 7 --batches 3); fi
  for encoder in amplitude angle basis phase iqp-z iqp; do
    for type in f64 f32; do
      for from in generator pageable pinned; do
        "$worker" --no-report --device "$1" encode --encoder "$encoder" --type "$type" --from "$from" \
          "${size[@]}" --check || return 1
      done
    done
  done
}
if wanted tests; then check worker_encode same_states cuda; fi
if wanted tests && [ "$devices" -gt 1 ]; then check worker_encode_devices same_states cuda:0,1; fi

# text DEVICE MODEL TOKENS: what the worker makes of the model, and its figures.
# shellcheck disable=SC2317 # called by check
text() {
  local requests=5
  if [ ${#quick[@]} -gt 0 ]; then requests=1; fi
  "$worker" --no-report --device "$1" llm --model "$2" --tokens "$3" >"$out/text.$1" &&
    "$worker" --no-report --device "$1" llm --model "$2" --tokens "$3" --requests "$requests" --json \
      >"$out/llm.$1.json" && [ -s "$out/text.$1" ]
}

# Of a trained model: greedy choices do not hang on the last bit.
trained=${INFERSTAT_TEST_MODELS-/nowhere}/stories260K.gguf
# shellcheck disable=SC2317 # called by check
same_text() {
  text cpu "$trained" 60 && text cuda "$trained" 60 && cmp "$out/text.cpu" "$out/text.cuda"
}
if wanted tests && [ -f "$trained" ]; then check worker_text same_text; fi

# Loads and tokens a second, of a model of random weights.
# shellcheck disable=SC2317 # called by check
time_text() {
  local shape=15m tokens=200 code=0
  if [ ${#quick[@]} -gt 0 ]; then shape=tiny tokens=4; fi
  "$worker" make-model --force --shape "$shape" --type f16 "$out/random.gguf" >/dev/null || return 1
  text cpu "$out/random.gguf" "$tokens" && text cuda "$out/random.gguf" "$tokens" || code=1
  rm -f "$out/random.gguf"
  return "$code"
}
if wanted llm; then check worker_llm time_text; fi

# ---- Benchmarks -------------------------------------------------------------

# Encoders beside a copy within the device, and beside PyTorch's where that is.
if wanted device; then
  check device_encode "$build/tests/bench/bench_device" --device cuda --json "${quick[@]}"
  while read -r name least; do
    goal "$name" "$(figure "$name" <(object "$out/device_encode.log"))" least "$least"
  done < <(object "$out/device_encode.log" |
    grep -oE '"[a-z0-9_-]+_goal": [0-9.]+' | sed 's/^"\(.*\)_goal": /\1 /')
  if command -v python3 >/dev/null; then
    check torch_encode python3 "$scripts/bench_torch_encode.py" "${quick[@]}"
  fi
  for type in f64 f32; do
    ours=$(figure "amplitude_${type}_states_per_second" <(object "$out/device_encode.log"))
    theirs=$(figure "amplitude_${type}_states_per_second" <(object "$out/torch_encode.log"))
    goal "amplitude_${type}_ratio_to_torch" \
      "$(awk -v a="$ours" -v b="$theirs" 'BEGIN { if (a > 0 && b > 0) printf "%.3f", a / b }')" least 2
  done
fi

# measure NAME ARGUMENT...: the pipeline before and after, with samples from pinned memory.
measure() {
  local name=pipeline_$1
  shift
  check "$name" "$scripts/bench_pipeline.sh" --build "$build" --device cuda --from pinned "$@" "${quick[@]}" --out "$out/$name"
  [ ! -s "$out/$name/report.md" ] || reports+=("$out/$name/report.md")
}

# cell BENCHMARK SYNC COLUMN [COLUMN]: of the trials of most qubits up to 16, the median of
# a column, or of its ratio to another; of several cells the largest.
cell() {
  [ -s "$out/$1/trials.csv" ] || return 0
  awk -F, -v sync="$2" -v column="$3" -v under="${4-}" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["sync"] != sync || $at["qubits"] > 16 || $at[column] == "" { next }
    under != "" && $at[under] + 0 <= 0 { next }
    $at["qubits"] > most { most = $at["qubits"]; split("", values); split("", count) }
    $at["qubits"] == most {
      key = $at["batch"] "," $at["prefetch"]
      values[key, ++count[key]] = under == "" ? $at[column] + 0 : $at[column] / $at[under]
    }
    END {
      best = -1
      for (key in count) {
        n = count[key]
        for (i = 1; i <= n; i++) sorted[i] = values[key, i]
        for (i = 2; i <= n; i++)
          for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--) {
            swap = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = swap
          }
        median = n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
        if (median > best) best = median
      }
      if (best >= 0) printf "%.6g", best
    }' "$out/$1/trials.csv"
}

ratio() { # A B
  awk -v a="$1" -v b="$2" 'BEGIN { if (a != "" && b > 0) printf "%.4f", a / b }'
}

if wanted pipeline; then
  # Beside a bare loop of copies, in one process.
  check pipeline_copies "$build/tests/bench/bench_pipeline" --device cuda --json "${quick[@]}"
  copies() { figure "$1" <(object "$out/pipeline_copies.log"); }
  goal ratio_to_bare_loop "$(copies ratio_to_bare_loop)" least 0.95
  goal ratio_to_slower_of_fill_and_bare "$(copies ratio_to_slower_of_fill_and_bare)" least 0.9
  goal ratio_to_no_instruments "$(copies ratio_to_no_instruments)" least 0.99

  measure amplitude --encoder amplitude --qubits "12 16 20" --batch "64 256" --prefetch 16
  measure amplitude_f32 --encoder amplitude --type f32 --qubits 16 --batch "64 256" --prefetch 16
  measure iqp --encoder iqp --qubits "12 16 20" --batch 64 --prefetch 16
  bare=$(copies bare_mb_per_second)
  for name in amplitude amplitude_f32; do
    goal "${name}_ratio_to_bare_loop" "$(awk -v bare="$bare" \
      -v rate="$(cell "pipeline_$name" events bytes_h2d duration_ns)" \
      'BEGIN { if (bare > 0 && rate != "") printf "%.4f", rate * 1e3 / bare }')" least 0.95
    goal "${name}_events_to_periodic" "$(ratio "$(cell "pipeline_$name" events items_per_second)" \
      "$(cell "pipeline_$name" periodic items_per_second)")" least 1
  done
  goal iqp_overlap_ratio "$(cell pipeline_iqp events overlap_ratio)" least 0.95
  goal iqp_exposed_share_of_copy "$(cell pipeline_iqp events exposed_copy_ns copy_busy_ns)" most 0.05
  goal iqp_starved_share_of_time "$(cell pipeline_iqp events copy_starved_ns duration_ns)" most 0.01
  goal iqp_events_to_periodic "$(ratio "$(cell pipeline_iqp events items_per_second)" \
    "$(cell pipeline_iqp periodic items_per_second)")" least 1.25
fi

# ---- The report -------------------------------------------------------------

join() {
  local IFS=,
  printf '%s' "$*"
}

# The cells of all benchmarks as objects; an empty one is null, and words are in quotes, as
# are numbers that mean none.
cells() {
  local report
  for report in "${reports[@]}"; do
    awk -F, -v name="$(basename "$(dirname "$report")")" '
      NR == 1 { for (i = 1; i <= NF; i++) keys[i] = $i; next }
      {
        printf "%s{\"benchmark\": \"%s\"", (NR > 2 ? "," : ""), name
        for (i = 1; i <= NF; i++) {
          word = keys[i] ~ /^(commit|driver|cuda)$/ || $i !~ /^-?[0-9][0-9.e+-]*$/
          value = $i == "" ? "null" : word ? "\"" $i "\"" : $i
          printf ", \"%s\": %s", keys[i], value
        }
        printf "}"
      }
      END { if (NR > 1) printf "\n" }' "$(dirname "$report")/cells.csv"
  done | paste -sd ,
}

llm_figures() {
  local name texts=()
  for name in cpu cuda; do
    [ "$(object "$out/llm.$name.json")" = null ] || texts+=("$(object "$out/llm.$name.json")")
  done
  [ ${#texts[@]} -gt 0 ] && printf '[%s]' "$(join "${texts[@]}")" || printf 'null'
}

is_quick=false
[ ${#quick[@]} -eq 0 ] || is_quick=true
printf '{"format": 1, "date": "%s", "commit": "%s", "device": "%s", "driver": "%s", ' \
  "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$commit" "$device" "$driver" >"$out/report.json"
printf '"emulated": %s, "quick": %s, "checks": [%s], "goals": [%s], ' "$emulated" "$is_quick" \
  "$(join "${json[@]}")" "$(join "${goal_json[@]}")" >>"$out/report.json"
printf '"encode": %s, "copies": %s, "timeline": %s, "torch": %s, "llm": %s, "benchmarks": [%s]}\n' \
  "$(object "$out/device_encode.log")" "$(object "$out/pipeline_copies.log")" \
  "$(object "$out/test_cupti_gpu.log")" "$(object "$out/torch_encode.log")" "$(llm_figures)" \
  "$(cells)" >>"$out/report.json"

# figures_table FILE: an object as the rows of a table.
figures_table() {
  sed 's/^{//; s/}$//; s/, "/\n"/g' "$1" | sed -nE 's/^"([^"]+)": (.*)$/| \1 | \2 |/p'
}

{
  printf '# GPU check\n\n'
  if [ "$emulated" = true ]; then
    printf '**The CUDA runtime was emulated on a CPU: no time here means anything.**\n\n'
  elif [ "$is_quick" = true ]; then
    printf '**Small benchmarks (--quick), to see that they work: no figures.**\n\n'
  fi
  printf '| | |\n|---|---|\n| date | %s |\n| commit | %s |\n| device | %s |\n| driver | %s |\n' \
    "$(date -u +%Y-%m-%d)" "$commit" "$device" "$driver"
  printf '\n| goal | measured | asked for | |\n|---|---:|---|---|\n'
  [ ${#goal_rows[@]} -eq 0 ] || printf '%s\n' "${goal_rows[@]}"
  printf '\n| check | outcome | seconds |\n|---|---|---|\n'
  [ ${#rows[@]} -eq 0 ] || printf '%s\n' "${rows[@]}"
  for name in device_encode torch_encode pipeline_copies; do
    if [ "$(object "$out/$name.log")" != null ]; then
      printf '\n| %s | |\n|---|---:|\n' "$name"
      figures_table <(object "$out/$name.log")
    fi
  done
  for name in cpu cuda; do
    if [ "$(object "$out/llm.$name.json")" != null ]; then
      printf '\n| llm on %s | |\n|---|---:|\n' "$name"
      figures_table <(object "$out/llm.$name.json")
    fi
  done
  for report in "${reports[@]}"; do
    printf '\n'
    sed 's/^#/##/' "$report"
  done
} >"$out/report.md"
say "$out/report.md"
exit "$failed"
