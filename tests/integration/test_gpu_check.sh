#!/usr/bin/env bash
# scripts/gpu_check.sh with tests that pass, fail and skip in place of those for a GPU, and
# the real worker on the CPU in place of a device: what it says, how it exits, and that its
# report can be read.
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
  mkdir -p "$folder/bundle"/{bin,tests/bench,lib,models}
  cp "$root/scripts/gpu_check.sh" "$root/scripts/bench_pipeline.sh" "$folder/bundle/"
  ln -s "$INFERSTATD" "$folder/bundle/bin/inferstatd"
  program "$folder/bundle/bin/inferstat-worker" 1 'no device'
  program "$folder/bundle/tests/bench/bench_pipeline" 1 'no device'
  echo 0123456789ab >"$folder/bundle/COMMIT"
  program "$folder/path/nvidia-smi" 0 'A device'
  program "$folder/path/compute-sanitizer" 0 'no errors'
}

# The real worker and benchmark, for which the CPU is the device.
worker_on_cpu() {
  local name
  for name in bin/inferstat-worker tests/bench/bench_pipeline; do
    cat >"$folder/bundle/$name" <<END
#!/usr/bin/env bash
exec "$INFERSTAT_BUILD/$name" "\${@/#cuda/cpu}"
END
  done
  "$WORKER" make-model --shape tiny "$folder/bundle/models/stories260K.gguf" >/dev/null
}

check() { # EXPECTED CODE, ARGUMENT...
  local expected=$1 code=0
  shift
  "$folder/bundle/gpu_check.sh" --out "$folder/out" "$@" >"$folder/said" 2>&1 || code=$?
  [ "$code" -eq "$expected" ] || fail "exit code $code, not $expected: $(cat "$folder/said")"
}

# What the report says of a check.
outcome() { # NAME
  python3 -c 'import json, sys
print({check["name"]: check["outcome"] for check in json.load(open(sys.argv[1]))["checks"]}[sys.argv[2]])' \
    "$folder/out/report.json" "$1"
}

bundle
program "$folder/bundle/tests/test_a_gpu" 77 'skipped: device cuda: no device answers: none'
check 3
grep -q 'no device answers: none: nothing to check here' "$folder/said" || fail "says not why"

bundle
program "$folder/bundle/tests/test_a_gpu" 0 ok
program "$folder/bundle/tests/test_b_gpu" 77 'skipped: no models'
worker_on_cpu
check 0 --quick
python3 - "$folder/out/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["commit"] == "0123456789ab" and report["device"] == "A device", report
outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
assert outcomes == {"test_a_gpu": "passed", "test_a_gpu.memcheck": "passed",
                    "test_a_gpu.racecheck": "passed", "test_b_gpu": "skipped",
                    "test_b_gpu.memcheck": "passed", "test_b_gpu.racecheck": "passed",
                    "worker_encode": "passed", "worker_text": "passed",
                    "pipeline_copies": "passed", "pipeline_amplitude": "passed",
                    "pipeline_iqp": "passed"}, outcomes
assert report["copies"]["ratio_to_bare_loop"] > 0, report
cells = [(cell["benchmark"], cell["qubits"], cell["sync"]) for cell in report["benchmarks"]]
assert cells == [(name, qubits, sync) for name in ("pipeline_amplitude", "pipeline_iqp")
                 for qubits in (8, 10) for sync in ("periodic", "events")], cells
assert all(cell["median_items_per_second"] > 0 for cell in report["benchmarks"]), report
PY
grep -q '^| test_a_gpu | passed |' "$folder/out/report.md" || fail "no row in report.md"
grep -q '^| 10 | 4 | 8 | events |' "$folder/out/report.md" || fail "no benchmark in report.md"

# What fails fails the check: a test, and a worker that does nothing, also where it does
# the same nothing on both devices.
bundle
program "$folder/bundle/tests/test_b_gpu" 1 'element 3 differs'
touch "$folder/bundle/models/stories260K.gguf"
check 1
grep -q 'element 3 differs' "$folder/said" || fail "does not show what failed"
for name in worker_encode worker_text pipeline_copies pipeline_amplitude pipeline_iqp; do
  [ "$(outcome "$name")" = "failed with 1" ] || fail "$name: $(outcome "$name")"
done

bundle
check 2
mkdir "$folder/empty"
"$root/scripts/gpu_bundle.sh" --build "$folder/empty" "$folder/new" 2>"$folder/said" && fail "packed nothing"
grep -q 'no tests for a GPU there' "$folder/said" || fail "says not what is missing"
"$root/scripts/gpu_bundle.sh" --build "$folder/empty" "$folder/empty" 2>"$folder/said" && fail "wrote over a folder"
grep -q 'is there already' "$folder/said" || fail "says not that it is there"
echo ok
