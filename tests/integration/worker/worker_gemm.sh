#!/usr/bin/env bash
# The worker's gemm: figures, refusals, a missing library, a stop, and what a collector has of it.
. "$(dirname "$0")/../../support/lib.sh"
export XDG_CACHE_HOME=$WORK/cache

gemm() { "$WORKER" gemm --no-report --device cpu "$@"; }

# ---- Figures ----

expect_exit 0 gemm --threads 2 --sizes 31,64 --type all --trials 3 --warmups 1 --json
python3 - "$WORK/out" <<'PYTHON' || fail "figures: $(cat "$WORK/out")"
import json, sys
whole = json.load(open(sys.argv[1]))
assert (whole["workload"], whole["device"], whole["threads"], whole["status"]) == ("gemm", "cpu", 2, "ok"), whole
assert whole["peak_flops_per_second"] > 0
rows = whole["gemm"]
assert {"cpu", "kernel", "cpu_governor", "huge_pages", "allocator", "build_flags"} == set(whole["fingerprint"]), whole
keys = ["size", "type", "implementation", "skipped", "trials", "p50_ns", "p95_ns", "p99_ns", "flops_per_second",
        "peak_ratio", "speed_up", "max_error", "correct"]
for row in rows:
    assert list(row) == keys, row
    if row["skipped"]:
        assert row["trials"] == 0 and row["p50_ns"] is None and row["peak_ratio"] is None and not row["correct"], row
        continue
    assert row["trials"] == 3 and row["correct"], row
    assert 0 < row["p50_ns"] <= row["p95_ns"] <= row["p99_ns"], row
    assert abs(row["flops_per_second"] * row["p50_ns"] / 2e9 / row["size"] ** 3 - 1) < 1e-3, row
    assert abs(row["peak_ratio"] * whole["peak_flops_per_second"] / row["flops_per_second"] - 1) < 1e-3, row
    assert row["max_error"] <= (0 if row["type"] == "int8" else row["size"] * 2 ** -23), row
for size in 31, 64:
    for kind in "f32", "f16", "bf16", "int8":
        here = {row["implementation"]: row for row in rows if (row["size"], row["type"]) == (size, kind)}
        assert not here["plain"]["skipped"] and here["plain"]["speed_up"] == 1, here
        if "openblas" in here:
            assert kind != "f32" or not here["openblas"]["skipped"], here
            assert kind != "int8" or here["openblas"]["skipped"] == "openblas has no product of int8", here
PYTHON
[ "$(find "$WORK/cache/inferstat" -name 'device-cpu-*.conf' | wc -l)" -eq 1 ] || fail "the peak is not kept"

expect_exit 0 gemm --sizes 64 --sizes 33 --type int8 --type bf16 --trials 2 --warmups 1
[ "$(awk '$3 == "plain" { print $1 $2 }' "$WORK/out" | tr '\n' ' ')" = "64bf16 64int8 33bf16 33int8 " ] ||
  fail "lists do not go on: $(cat "$WORK/out")"
expect_exit 0 gemm --sizes 1024 --time-limit 0.001 --trials 1
expect_text "$WORK/out" "plain     skipped: one product would take"

# ---- Refusals ----

refused() {
  local text=$1
  shift
  expect_exit 2 gemm "$@"
  expect_text "$WORK/err" "$text"
  [ ! -s "$WORK/out" ] || fail "a usage error writes to standard output"
}
refused "--sizes: 0 is outside 1 to 16384" --sizes 64,0
refused "--sizes: 16385 is outside" --sizes 16385
refused "--sizes" --sizes 99999999999999999999
refused "--sizes" --sizes ""
refused "--sizes" --sizes 64,
refused "--sizes" --sizes 64,,65
refused "--sizes" --sizes 64x
refused "--sizes: 64 is there twice" --sizes 64,65,64
refused "--sizes: more than 32 numbers" --sizes "$(seq -s, 1 33)"
refused "'f64' is none of f32, f16, bf16, int8, all" --type f64
refused "--warmups: 0 is outside" --warmups 0
refused "--trials: 0 is outside" --trials 0
refused "--time-limit" --time-limit 0
refused "unexpected '64'" 64
expect_exit 2 "$WORKER" gemm --no-report --device cpu:99
expect_exit 0 "$WORKER" gemm --help
expect_text "$WORK/out" "--sizes N,..."
expect_exit 0 "$WORKER" --help
expect_text "$WORK/out" "OpenBLAS or cuBLAS"

# ---- Without the library ----

# What lies first in the loader's path is no library at all.
mkdir "$WORK/none"
echo "no library" >"$WORK/none/libopenblas.so.0"
expect_exit 0 env LD_LIBRARY_PATH="$WORK/none" "$WORKER" gemm --no-report --device cpu --sizes 32 --json
expect_text "$WORK/err" "libopenblas.so.0 cannot be opened"
expect_text "$WORK/err" "libopenblas0-pthread"
python3 - "$WORK/out" <<'PYTHON' || fail "without a library: $(cat "$WORK/out")"
import json, sys
rows = json.load(open(sys.argv[1]))["gemm"]
assert [(row["implementation"], row["correct"]) for row in rows] == [("plain", True)], rows
PYTHON

# ---- A stop ----

has_row() {
  grep -q ' plain ' "$WORK/worker.log"
}

start worker "$WORKER" gemm --no-report --device cpu --sizes 8,512 --trials 100000 --time-limit 600
wait_until 60 has_row
stop worker INT 130
expect_text "$WORK/worker.log" "stopped after "

# ---- Records ----

command -v "$INFERSTATD" >/dev/null || {
  echo ok
  exit 0
}
start_collector --log-level info
expect_exit 0 "$WORKER" --collector "$COLLECTOR" gemm --device cpu --sizes 48 --trials 4
found=$(sqlite3 -readonly "$DB" "select operation || ' ' || items || ' ' || bytes from v_operation
  where operation = 'gemm f32 48 plain'")
[ "$found" = "gemm f32 48 plain 4 $((4 * 3 * 4 * 48 * 48))" ] || fail "records: $found"
echo ok
