#!/usr/bin/env bash
# scripts/gpu_check.sh with tests that pass, fail and skip in place of those for a GPU:
# what it says, how it exits, and that its report can be read.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/inferstat-gpu-check.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export PATH="$folder/path:$PATH"
unset INFERSTAT_TEST_MODELS

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# A program that prints TEXT and exits with CODE.
program() { # PATH CODE TEXT
  mkdir -p "$(dirname "$1")"
  printf '#!/bin/sh\nprintf "%%s\\n" '"'%s'"'\nexit %s\n' "$3" "$2" >"$1"
  chmod +x "$1"
}

# A bundle, as scripts/gpu_bundle.sh lays it out.
bundle() {
  rm -rf "${folder:?}/bundle"
  mkdir -p "$folder/bundle"/{bin,tests,bench,lib}
  cp "$root/scripts/gpu_check.sh" "$folder/bundle/"
  echo 0123456789ab >"$folder/bundle/COMMIT"
  program "$folder/path/nvidia-smi" 0 'A device'
  program "$folder/path/compute-sanitizer" 0 'no errors'
}

check() { # EXPECTED CODE
  local code=0
  "$folder/bundle/gpu_check.sh" --out "$folder/out" >"$folder/said" 2>&1 || code=$?
  [ "$code" -eq "$1" ] || fail "exit code $code, not $1: $(cat "$folder/said")"
}

bundle
program "$folder/bundle/tests/test_a_gpu" 77 'skipped: device cuda: no device answers: none'
check 3
grep -q 'no device answers: none: nothing to check here' "$folder/said" || fail "says not why"

bundle
program "$folder/bundle/tests/test_a_gpu" 0 ok
program "$folder/bundle/tests/test_b_gpu" 77 'skipped: no models'
program "$folder/bundle/bench/bench_encode" 0 '{"ratio": 1.5}'
check 0
python3 - "$folder/out/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["commit"] == "0123456789ab" and report["device"] == "A device", report
outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
assert outcomes == {"test_a_gpu": "passed", "test_a_gpu.memcheck": "passed",
                    "test_a_gpu.racecheck": "passed", "test_b_gpu": "skipped",
                    "test_b_gpu.memcheck": "passed", "test_b_gpu.racecheck": "passed",
                    "bench_encode": "passed"}, outcomes
assert report["benchmarks"] == {"bench_encode": {"ratio": 1.5}}, report
PY
grep -q '^| test_a_gpu | passed |' "$folder/out/report.md" || fail "no row in report.md"

program "$folder/bundle/tests/test_b_gpu" 1 'element 3 differs'
check 1
grep -q 'element 3 differs' "$folder/said" || fail "does not show what failed"
python3 -m json.tool "$folder/out/report.json" >/dev/null || fail "report.json cannot be read"

bundle
check 2
mkdir "$folder/empty"
"$root/scripts/gpu_bundle.sh" --build "$folder/empty" "$folder/new" 2>"$folder/said" && fail "packed nothing"
grep -q 'no tests for a GPU there' "$folder/said" || fail "says not what is missing"
"$root/scripts/gpu_bundle.sh" --build "$folder/empty" "$folder/empty" 2>"$folder/said" && fail "wrote over a folder"
grep -q 'is there already' "$folder/said" || fail "says not that it is there"
echo ok
