#!/usr/bin/env bash
# scripts/gpu_bundle.sh and scripts/gpu_check.sh with the emulated CUDA runtime as the
# device: what is packed runs without the build, whole, every test of it passes, and the
# report says that its figures mean nothing.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/inferstat-gpu-emulated.XXXXXX")
trap 'rm -rf "$folder"' EXIT
unset INFERSTAT_TEST_MODELS INFERSTAT_COLLECTOR LD_LIBRARY_PATH

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# ---- A build with CUDA, as far as can be told from its files ----

build=$folder/build
mkdir -p "$build"/{bin,tests/unit,tests/bench,tests/support/zoo}
cp "$INFERSTATD" "$INFERSTAT" "$build/bin/"
cp "$INFERSTAT_BUILD/emulated/inferstat-worker-emulated" "$build/bin/inferstat-worker"
for name in bench_device bench_pipeline; do
  cp "$INFERSTAT_BUILD/emulated/$name-emulated" "$build/tests/bench/$name"
done
cp "$INFERSTAT_BUILD/tests/bench/bench_encode" "$build/tests/bench/"
cp "$INFERSTAT_BUILD/emulated/zoo_probe-emulated" "$build/tests/support/zoo/zoo_probe"
# Those that take long on a CPU are tests of their own there.
for name in test_cuda_tensors test_encoding test_vectors; do
  cp "$INFERSTAT_BUILD/tests/unit/${name}_emulated" "$build/tests/unit/${name}_gpu"
done

# ---- The bundle ----

# What models there are at hand does not go along by itself.
mkdir "$folder/models"
touch "$folder/models/stories260K.gguf"
INFERSTAT_TEST_MODELS=$folder/models "$root/scripts/gpu_bundle.sh" --build "$build" "$folder/bundle" \
  2>"$folder/said" || fail "no bundle: $(cat "$folder/said")"
grep -qE 'bundle: [1-5]?[0-9] MB$' "$folder/said" || fail "the size: $(cat "$folder/said")"
[ ! -e "$folder/bundle/models" ] || fail "models went along that nobody asked for"
"$root/scripts/gpu_bundle.sh" --build "$build" --models "$folder/models" "$folder/other" \
  2>"$folder/said" || fail "no bundle with models: $(cat "$folder/said")"
[ -f "$folder/other/models/stories260K.gguf" ] || fail "models that were asked for stayed behind"
grep -q 'not all models are there' "$folder/said" || fail "does not say which models are missing"
rm -rf "$folder/other" "$build" "$folder/bundle"
tar -xzf "$folder/bundle.tar.gz" -C "$folder" # what is carried to the device

# Everything it loads is its own, but for the C library and the loader.
foreign=$(LD_LIBRARY_PATH=$folder/bundle/lib ldd "$folder"/bundle/programs/* |
  awk -v own="$folder/bundle/lib/" '$2 == "=>" && index($3, own) != 1 { print $1 }' | sort -u |
  grep -vE '^lib(c|m|dl|rt|pthread|util|resolv)\.so' || true)
[ -z "$foreign" ] || fail "loads from elsewhere: $foreign"
# Parts of the C library fit no other than their own.
for name in libc libm libdl librt libpthread libutil libresolv; do
  [ -z "$(find "$folder/bundle/lib" -name "$name.so*")" ] || fail "brings $name"
done

# bare COMMAND...: with nothing of this environment.
bare() {
  env -i PATH=/usr/bin:/bin HOME="$folder" TMPDIR="$folder" LC_ALL=C "$@"
}

for program in inferstat inferstatd inferstat-worker; do
  bare "$folder/bundle/bin/$program" --version >/dev/null ||
    fail "$program does not start"
done
if bare "$folder/bundle/gpu_check.sh" --parts everything 2>"$folder/said"; then fail "takes any part"; fi
grep -q "'everything' is none of" "$folder/said" || fail "does not say which parts there are"

# ---- Its check ----

code=0
bare "$folder/bundle/gpu_check.sh" --quick --out "$folder/out" >"$folder/said" 2>&1 || code=$?
[ "$code" -eq 0 ] || fail "exit code $code: $(cat "$folder/said")"
grep -q 'emulated on a CPU: no time below means anything' "$folder/said" || fail "passes for a device"
grep -q '^\*\*The CUDA runtime was emulated' "$folder/out/report.md" || fail "report.md passes for a device's"
python3 - "$folder/out/report.json" <<'PY' || fail "report.json: $(cat "$folder/out/report.json")"
import json, sys
report = json.load(open(sys.argv[1]))
keys = ["format", "date", "commit", "device", "driver", "emulated", "quick", "minutes", "ended",
        "checks", "goals", "encode", "copies", "timeline", "torch", "llm", "zoo",
        "zoo_torch", "gemm", "benchmarks"]
assert list(report) == keys, list(report)
assert report["format"] == 2 and report["ended"] is False and report["emulated"] is True and report["quick"] is True
assert report["device"] == "Emulated device 0", report["device"]
outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
wanted = {name: "passed" for name in (
    "test_cuda_tensors_gpu", "test_encoding_gpu", "worker_encode", "worker_llm",
    "device_encode", "pipeline_copies", "pipeline_amplitude",
    "pipeline_amplitude_f32", "pipeline_iqp", "zoo_models", "zoo_outputs", "gemm")}
for name, outcome in wanted.items():
    assert outcomes[name] == outcome, (name, outcomes)
assert outcomes["test_vectors_gpu"] == "skipped", outcomes  # without models
assert report["zoo"]["device"] == report["gemm"]["device"] == "cuda:0", report
goals = {goal["name"]: goal for goal in report["goals"]}
for name in ("amplitude_f64_ratio_to_copy", "amplitude_f64_ratio_to_copy_once", "amplitude_f32_ratio_to_unfused", "basis_f64_ratio_to_copy",
             "ratio_to_bare_loop", "ratio_to_slower_of_fill_and_bare", "ratio_to_no_instruments",
             "amplitude_ratio_to_bare_loop", "amplitude_f32_events_to_periodic",
             "iqp_overlap_ratio", "iqp_exposed_share_of_copy", "iqp_starved_share_of_time",
             "iqp_events_to_periodic"):
    goal = goals[name]
    reached = goal["value"] >= goal["goal"] if goal["bound"] == "least" else goal["value"] <= goal["goal"]
    assert goal["verdict"] == ("reached" if reached else "missed"), goal
for name in ("amplitude_f64", "amplitude_f32", "iqp_f64", "iqp_f32"):
    assert report["encode"][name + "_ratio_to_passes"] > 0, report["encode"]
assert report["encode"]["product"] == "Emulated device 0" and report["encode"]["emulated"] == 1
assert [text["device"] for text in report["llm"]] == ["cpu", "cuda:0"], report["llm"]
assert all(text["tokens_per_second"] > 0 and text["load_duration_ns"] > 0 for text in report["llm"])
assert {cell["benchmark"] for cell in report["benchmarks"]} == {
    "pipeline_amplitude", "pipeline_amplitude_f32", "pipeline_iqp"}
PY

# A part alone, and a test that fails.
printf '#!/bin/sh\necho "element 3 differs"\nexit 1\n' >"$folder/bundle/tests/test_cuda_encode_gpu"
chmod +x "$folder/bundle/tests/test_cuda_encode_gpu"
rm -f "$folder"/bundle/tests/test_encoding_gpu
code=0
bare "$folder/bundle/gpu_check.sh" --parts tests --quick --out "$folder/out2" >"$folder/said" 2>&1 || code=$?
[ "$code" -eq 1 ] || fail "exit code $code where a test fails: $(cat "$folder/said")"
grep -q '^| test_cuda_encode_gpu | failed with 1 |' "$folder/out2/report.md" || fail "does not name what failed"
grep -q '^| worker_encode | passed |' "$folder/out2/report.md" || fail "one failure ends the rest"
grep -q '"encode": null, "copies": null' "$folder/out2/report.json" || fail "figures of parts that did not run"
echo ok
