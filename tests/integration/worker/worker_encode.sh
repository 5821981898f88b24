#!/usr/bin/env bash
# The worker's encode: files in and out, refusals, a stop in the middle, what a collector
# has of it.
. "$(dirname "$0")/../../support/lib.sh"

encode() { "$WORKER" encode --no-report "$@"; }

# figure NAME: that number of the JSON object in $WORK/out.
figure() {
  sed -n "s/.*\"$1\": \([0-9.e+-]*\|null\|\"[a-z]*\"\)[,}].*/\1/p" "$WORK/out"
}

expect_figure() {
  [ "$(figure "$1")" = "$2" ] || fail "$1 is $(figure "$1"), not $2"
}

# make_npy FILE TYPE ROWS COLUMNS EXPRESSION: numbers by row r and column c.
make_npy() {
  python3 - "$@" <<'PYTHON'
import math, struct, sys
path, kind, rows, columns, expression = sys.argv[1:]
rows, columns = int(rows), int(columns)
text = "{'descr': '<%s', 'fortran_order': False, 'shape': (%d, %d), }" % (kind, rows, columns)
text += " " * (117 - len(text)) + "\n"
numbers = [eval(expression, {"r": r, "c": c, "math": math}) for r in range(rows) for c in range(columns)]
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
    file.write(struct.pack("<%d%s" % (len(numbers), "d" if kind == "f8" else "f"), *numbers))
PYTHON
}

# ---- Files ----

make_npy "$WORK/in.npy" f8 2 3 "[[1, 2, 2], [-3e200, 4e200, 0]][r][c]"
expect_exit 0 encode --encoder amplitude --qubits 2 --input "$WORK/in.npy" --output "$WORK/out.npy" \
  --check --json
expect_figure items 2
expect_figure checked 2
expect_figure differing 0
expect_figure status '"ok"'
expect_figure bytes_h2d 48
expect_figure source '"file"'
python3 - "$WORK/out.npy" <<'PYTHON' || fail "the states in the file are not what they should be"
import struct, sys
data = open(sys.argv[1], "rb").read()
assert b"'descr': '<c16'" in data[:128] and b"'shape': (2, 4)" in data[:128]
numbers = struct.unpack("<16d", data[128:])
wanted = [1 / 3, 0, 2 / 3, 0, 2 / 3, 0, 0, 0, -0.6, 0, 0.8, 0, 0, 0, 0, 0]
assert all(abs(a - b) < 1e-15 for a, b in zip(numbers, wanted)), numbers
PYTHON
expect_exit 4 encode --encoder amplitude --qubits 2 --input "$WORK/in.npy" --output "$WORK/out.npy"
expect_text "$WORK/err" "already exists (replace it with --force)"
expect_exit 0 encode --encoder amplitude --qubits 2 --input "$WORK/in.npy" --output "$WORK/out.npy" \
  --force

# Every encoder and type, from every source, is what the reference says.
for encoder in amplitude angle basis phase iqp-z iqp; do
  for type in f64 f32; do
    expect_exit 0 encode --encoder "$encoder" --type "$type" --qubits 7 --batch-size 5 --batches 3 \
      --check --json
    expect_figure items 15
    expect_figure differing 0
  done
done
for from in generator pageable pinned; do
  for sync in events periodic; do
    expect_exit 0 encode --encoder phase --qubits 9 --from "$from" --sync "$sync" --json \
      --output "$WORK/$from-$sync.npy"
    cmp "$WORK/generator-events.npy" "$WORK/$from-$sync.npy" || fail "$from, $sync: other states"
    expect_figure source "\"$from\""
  done
done

# Samples are generated before the run by default, so that it times encoding alone.  What was not
# measured is null: the pool of a run that fills no slots, and what was switched off.
nulls() {
  grep -o '"[a-z_0-9]*": null' "$WORK/out" | cut -d'"' -f2 | { grep -vx cpu_governor || true; } | tr '\n' ' '
}
steady="repeats items_per_second_median items_per_second_trimmed_mean items_per_second_iqr_ratio \
items_per_second_interval_ratio steady "
unchecked="checked differing largest_difference least_fidelity "
pool="pool_acquires pool_waits pool_wait_ns pool_available_min pool_available_max pool_wait_histogram "
expect_exit 0 encode --encoder amplitude --qubits 8 --json
expect_figure source '"pageable"'
expect_figure pool_acquires "$(figure chunks)"
[ "$(nulls)" = "$unchecked$steady" ] || fail "null: $(nulls)"
expect_exit 0 encode --encoder amplitude --qubits 8 --from pinned --check --json
[ "$(nulls)" = "pool_starvation_ratio ${pool}fill_ns pool_starvation_ratio $steady" ] ||
  fail "null: $(nulls)"
expect_exit 0 env INFERSTAT_OVERLAP_TRACKING=0 INFERSTAT_POOL_METRICS=0 "$WORKER" encode --no-report \
  --encoder amplitude --qubits 8 --from generator --check --json
of_both="overlap_ratio exposed_copy_ns copy_starved_ns pool_starvation_ratio "
[ "$(nulls)" = "${of_both}copy_busy_ns compute_busy_ns both_busy_ns idle_ns unmeasured_chunks \
${pool}generate_ns $of_both$steady" ] || fail "null: $(nulls)"

expect_exit 0 encode --encoder angle --qubits 1
expect_text "$WORK/out" "angle, 1 qubit, f64 on cpu"

# Several devices at once: the same file, each sample once, figures by device.
for devices in cpu cpu:0 cpu:0,1 cpu:2,0,1; do
  expect_exit 0 encode --device "$devices" --encoder iqp --qubits 6 --batch-size 3 --batches 7 --json \
    --output "$WORK/$devices.npy"
  expect_figure bytes_h2d 3528
  python3 - "$WORK/out" "$devices" <<'PYTHON' || fail "figures of $devices"
import json, sys
figures = json.load(open(sys.argv[1]))
numbers = sys.argv[2].partition(":")[2] or "0"
names = ["cpu:" + number if number != "0" else "cpu" for number in numbers.split(",")]
assert figures["device"] == (sys.argv[2] if "," in numbers else "cpu"), figures
assert figures["items"] == 21, figures
assert [device["device"] for device in figures["devices"]] == names, figures
assert sum(device["items"] for device in figures["devices"]) == 21, figures
assert len(figures["pool_wait_histogram"]) == 24, figures
assert sum(figures["pool_wait_histogram"]) == figures["pool_waits"], figures
assert all(device["status"] == "ok" for device in figures["devices"]), figures
PYTHON
  cmp "$WORK/cpu.npy" "$WORK/$devices.npy" || fail "$devices: other states"
done
expect_exit 0 encode --device cpu:0,1 --encoder iqp --qubits 3 --batch-size 4 --batches 2
expect_text "$WORK/out" "on cpu:0,1: 8 states"
expect_text "$WORK/out" "  cpu: 4 states"
expect_text "$WORK/out" "  cpu:1: 4 states"

# Without --json people are told what was checked, and nothing that was not measured.
expect_exit 0 encode --encoder iqp --qubits 3 --batch-size 4 --batches 2 --check
expect_text "$WORK/out" "checked 8 states: 0 differ from the reference"
expect_exit 0 env INFERSTAT_OVERLAP_TRACKING=0 "$WORKER" encode --no-report --encoder iqp --qubits 3
expect_text "$WORK/out" "overlap -, exposed copy -,"

# A run whose copies cannot hide says so, unless it is short, or they take next to no time: an
# angle is a few bytes, and the state many.
for of in "amplitude 10 pinned" "amplitude 40 pinned" "angle 40 generator"; do
  read -r encoder batches from <<<"$of"
  expect_exit 0 encode --encoder "$encoder" --qubits 12 --batches "$batches" --from "$from" \
    --sync periodic --pool-size 1 --json
  expect_figure overlap_ratio 0
  said=$(grep -c 'overlap by 0.0 % only, .*(try --sync events, a larger --pool-size)' "$WORK/err" || true)
  [ "$said" -eq $((batches == 40 && $(figure exposed_copy_ns) * 20 > $(figure duration_ns))) ] ||
    fail "$of: $(cat "$WORK/err" "$WORK/out")"
done
INFERSTAT_OVERLAP_TRACKING=0 expect_exit 0 encode --device cpu --encoder angle --qubits 10 --batches 40
[ ! -s "$WORK/err" ] || fail "says what it does not know: $(cat "$WORK/err")"

# So does one whose copies wait for samples for more than a twentieth of the time, which
# depends on the machine; lent ones are there.
for from in generator pinned; do
  expect_exit 0 encode --encoder amplitude --qubits 12 --batches 60 --batch-size 8 --from "$from" \
    --fillers 1 --json
  said=$(grep -c 'copies waited for samples for' "$WORK/err" || true)
  [ "$said" -eq $(($(figure copy_starved_ns) * 20 > $(figure duration_ns))) ] ||
    fail "$from: $(cat "$WORK/err" "$WORK/out")"
done
expect_figure copy_starved_ns 0

# How the host waits changes no state; at debug level each chunk is told.
for wait in block spin; do
  expect_exit 0 encode --encoder phase --qubits 9 --wait "$wait" --json --output "$WORK/$wait.npy"
  cmp "$WORK/generator-events.npy" "$WORK/$wait.npy" || fail "--wait $wait: other states"
done
expect_exit 0 encode --encoder phase --qubits 9 --batches 5 --log-level debug
[ "$(grep -c 'pipeline: chunk [0-4]: copied from .* us on in .* us, overlap [01]\.' "$WORK/err")" -eq 5 ] ||
  fail "chunks: $(cat "$WORK/err")"
grep -Eq ': [0-9]+ of [0-9]+ acquires of a slot waited(: [0-9]+ from [0-9]+ us on(, [0-9]+ from [0-9]+ us on)*)?$' \
  "$WORK/err" || fail "waits: $(cat "$WORK/err")"

# ---- Repeats ----

# Until the speed is steady, or for so long; which, a machine's other work decides.
for devices in cpu cpu:0,1; do
  expect_exit 0 encode --device "$devices" --encoder angle --qubits 8 --batches 6 --batch-size 4 \
    --check --until-steady 0.5 --repeats 40 --json
  python3 - "$WORK/out" <<'PYTHON' || fail "repeats: $(cat "$WORK/out")"
import json, sys
figures = json.load(open(sys.argv[1]))
assert figures["items"] == figures["checked"] == 24 and figures["differing"] == 0, figures
assert 5 <= figures["repeats"] <= 40, figures
assert figures["steady"] == (figures["items_per_second_interval_ratio"] <= 0.5), figures
assert figures["steady"] or figures["repeats"] == 40, figures
assert figures["items_per_second_median"] > 0 and figures["items_per_second_trimmed_mean"] > 0, figures
assert figures["items_per_second_iqr_ratio"] >= 0, figures
PYTHON
done
expect_exit 0 encode --encoder angle --qubits 8 --batches 3 --until-steady 0.001 --repeats 5
expect_text "$WORK/out" "5 repeats: median "
expect_text "$WORK/out" "IQR / median "
expect_text "$WORK/out" "steady"
expect_exit 0 encode --encoder angle --qubits 3 --json
grep -q '"repeats": null, .*"steady": null' "$WORK/out" || fail "one run is no repeat"

# ---- Refusals ----

# refused CODE TEXT ARGUMENT...
refused() {
  local code=$1 text=$2
  shift 2
  expect_exit "$code" encode "$@"
  expect_text "$WORK/err" "$text"
}

refused 2 "no encoder"
refused 2 "'angel' is none of amplitude, angle" --encoder angel
refused 2 "--qubits: 31 is outside 1 to 30" --encoder angle --qubits 31
refused 2 "--pool-size: 17" --encoder angle --pool-size 17
refused 2 "--prefetch: 65" --encoder angle --prefetch 65
refused 2 "--fillers: 33" --encoder angle --fillers 33
refused 2 "'doze' is none of block, spin" --encoder angle --wait doze
refused 2 "--chunk-mb: 257" --encoder angle --chunk-mb 257
refused 2 "--until-steady: 0 is outside 0.001 to 1" --encoder angle --until-steady 0
refused 2 "--repeats: 1001 is outside 5 to 1000" --encoder angle --until-steady 0.1 --repeats 1001
refused 2 "--repeats 6: until when is not said" --encoder angle --repeats 6
refused 2 "--until-steady: every repeat makes the same states" --encoder angle --qubits 3 \
  --until-steady 0.1 --output "$WORK/repeated.npy"
[ ! -e "$WORK/repeated.npy" ] || fail "a refused output is there"
refused 2 "unexpected 'x'" --encoder angle x
refused 2 "cpu:1 is named twice" --encoder angle --device cpu:1,1
refused 2 "no list of devices (use cuda:N,N,... or cpu:N,N,...)" --encoder angle --device cpu,cpu
refused 2 "device cpu:16: there are 16 (numbered from 0)" --encoder angle --device cpu:0,16
refused 2 "device cpu:99: there are 16" --encoder angle --device cpu:99
refused 4 "of memory are needed on the host" --encoder angle --qubits 30 --device cpu:0,1
refused 4 "of memory are needed on device cpu" --encoder angle --qubits 30
refused 4 "2 x 3 numbers: angle of 4 qubits takes 4 a sample" --encoder angle --qubits 4 \
  --input "$WORK/in.npy"
refused 2 "--type says f32" --encoder angle --qubits 3 --type f32 --input "$WORK/in.npy"
refused 4 "cannot open" --encoder angle --input "$WORK/nothing.npy"
refused 4 "cannot open: not a regular file" --encoder angle --qubits 3 --input "$WORK"
refused 4 "cannot write: No space left" --encoder angle --qubits 3 --output /dev/full
refused 4 "are to be written, the disk has room for" --encoder angle --qubits 16 --batches 1000000000 \
  --output "$WORK/large.npy"
for left in "$WORK/large.npy" "$WORK/large.npy.part"; do
  [ ! -e "$left" ] || fail "a part is left: $left"
done
refused 2 "--output -: figures go to standard output" --encoder angle --qubits 3 --output -
INFERSTAT_CHUNK_MB=300 refused 2 "INFERSTAT_CHUNK_MB" --encoder angle --qubits 3
cp "$WORK/in.npy" "$WORK/kept.npy"
ln "$WORK/in.npy" "$WORK/linked.npy"
for output in in linked; do
  refused 2 "is the input too" --encoder amplitude --qubits 2 --input "$WORK/in.npy" \
    --output "$WORK/$output.npy" --force
  cmp "$WORK/in.npy" "$WORK/kept.npy" || fail "the input is overwritten"
done
make_npy "$WORK/nan.npy" f4 9 2 "math.nan if r == 6 else 1"
refused 4 "nan.npy: sample 6: an input is NaN or infinite" --encoder angle --qubits 2 \
  --input "$WORK/nan.npy" --batch-size 4
[ "$(cat "$WORK/out")" = "angle, 2 qubits, f32 on cpu: failed after 4 states" ] ||
  fail "more than that it failed: $(cat "$WORK/out")"
make_npy "$WORK/zero.npy" f8 3 2 "r"
refused 4 "zero.npy: sample 0: all inputs are zero" --encoder amplitude --qubits 1 \
  --input "$WORK/zero.npy"
make_npy "$WORK/index.npy" f8 3 1 "r * 2"
refused 4 "index.npy: sample 2: the index is" --encoder basis --qubits 2 --input "$WORK/index.npy"
head -c 150 "$WORK/in.npy" >"$WORK/cut.npy"
refused 4 "cut.npy: truncated" --encoder amplitude --qubits 2 --input "$WORK/cut.npy"
[ ! -s "$WORK/out" ] || fail "figures of no run: $(cat "$WORK/out")"

# ---- A stop in the middle ----

# has_states FILE: more than its header, which is there before the run is.
has_states() {
  [ "$(wc -c 2>/dev/null <"$1" || echo 0)" -gt 128 ]
}

# Checking takes long enough to be stopped.  What was there stays, and nothing else is left.
echo old >"$WORK/part.npy"
start worker "$WORKER" encode --no-report --encoder iqp --qubits 12 --type f32 --batches 8000 --check \
  --output "$WORK/part.npy" --force --batch-size 2 --json
wait_until 20 has_states "$WORK/part.npy.part"
stop worker TERM 130
cp "$WORK/worker.log" "$WORK/out"
expect_figure status '"cancelled"'
[ "$(cat "$WORK/part.npy")" = old ] || fail "what was there is gone"
[ ! -e "$WORK/part.npy.part" ] || fail "a part is left"

start worker "$WORKER" encode --no-report --encoder iqp --qubits 12 --type f32 --batches 8000 --check \
  --output "$WORK/stopped.npy" --batch-size 2
wait_until 20 has_states "$WORK/stopped.npy.part"
stop worker INT 130
expect_text "$WORK/worker.log" "stopped before the end"
[ ! -e "$WORK/stopped.npy" ] || fail "a run that was stopped has an output"

# ---- Records ----

if ! command -v "$INFERSTATD" >/dev/null; then
  exit 0
fi
start_collector --log-level info
"$WORKER" --collector "$COLLECTOR" encode --encoder angle --qubits 6 --batch-size 8 --batches 5 --json \
  >"$WORK/out" 2>"$WORK/err" || fail "reporting"
[ "$(figure records_acknowledged)" = "$(figure records_produced)" ] || fail "not all was acknowledged"
"$WORKER" --collector "$COLLECTOR" encode --encoder angle --qubits 2 --input "$WORK/nan.npy" \
  --batch-size 4 >/dev/null 2>&1 && fail "a bad sample is encoded"
sql() {
  sqlite3 -readonly "$DB" "$1"
}
[ "$(sql "select count(*), sum(items), sum(bytes) from v_operation where operation = 'encode' and device = 'cpu'
  and run = (select run from v_pipeline where status = 'ok')")" = "5|40|1920" ] || fail "operations"
[ "$(sql "select group_concat(status || ' ' || items || ' ' || source, ', ') from (select status, items, source from v_pipeline
  order by started_ns)")" = "ok 40 pageable, error 4 file" ] || fail "pipelines: $(sql 'select status, items from v_pipeline')"
[ "$(sql "select group_concat(model, ', ') from (select model from v_load order by started_ns)")" = \
  "angle 6 qubits f64, angle 2 qubits f32" ] || fail "loads"

# Repeats are runs of one load; a stop ends them, in the middle of one or between two.
start repeats "$WORKER" --collector "$COLLECTOR" encode --encoder iqp --qubits 9 --batches 200 --json \
  --until-steady 0.001 --repeats 1000
has_repeats() {
  [ "$(sql "select count(*) from v_pipeline where model = 'iqp 9 qubits f64' and status = 'ok'")" -ge 3 ]
}
wait_until 20 has_repeats
stop repeats INT 130
cp "$WORK/repeats.log" "$WORK/out"
expect_figure status '"cancelled"'
[ "$(figure repeats)" -ge 3 ] || fail "only $(figure repeats) repeats"
[ "$(figure items_per_second_median)" != null ] || fail "no median of what was done"
grep -q '"steady": false' "$WORK/out" || fail "stopped, and steady: $(cat "$WORK/out")"
[ "$(sql "select sum(status = 'ok') || ' ' || (sum(status = 'cancelled') <= 1) || ' ' || count(distinct run)
  from v_pipeline where model = 'iqp 9 qubits f64'")" = "$(figure repeats) 1 1" ] ||
  fail "pipelines of $(figure repeats) repeats"
[ "$(sql "select count(*) from v_load where model = 'iqp 9 qubits f64'")" = 1 ] || fail "not one load"

expect_exit 0 "$INFERSTAT" --collector "$COLLECTOR" pipelines
expect_text "$WORK/out" "encode"
stop collector
