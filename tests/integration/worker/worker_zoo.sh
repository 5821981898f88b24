#!/usr/bin/env bash
# The worker's small models: figures, records, files, refusals, a stop in the middle.
. "$(dirname "$0")/../../support/lib.sh"

zoo() { "$WORKER" --device cpu --threads 1 zoo --no-report "$@"; }

# refused CODE TEXT ARGUMENT...: one line of error with those words.
refused() {
  local code=$1 text=$2
  shift 2
  expect_exit "$code" zoo "$@"
  expect_text "$WORK/err" "$text"
  [ "$(wc -l <"$WORK/err")" -eq 1 ] || fail "more than one line of error"
}

# expect_json EXPRESSION: true of the object `o` in $WORK/out and its first model `m`.
expect_json() {
  python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
m = o["models"][0] if o["models"] else None
assert eval(sys.argv[2]), o' "$WORK/out" "$1" || fail "not so: $1"
}

# ---- Refusals ----

refused 2 "unknown model 'ds-cn' (did you mean ds-cnn)" --model ds-cn
refused 2 "unknown model '' (--list has all)" --model ds-cnn,
refused 2 "'visual' is none of vision, audio, sensor, anchor" --category visual
refused 2 "several choices of models" --category vision --model ds-cnn
refused 2 "--batch-size: 0 is outside 1 to 16777216" --batch-size 0
refused 2 "--batch-size: 3 is there twice" --batch-size 1,3,3
refused 2 "--model: ds-cnn is there twice" --model ds-cnn --model resnet-8,DS-CNN
refused 2 "--until-steady: with one --batch-size" --until-steady 0.1 --batch-size 1,2
refused 2 "--repeats 6: until when is not said" --repeats 6
refused 2 "--trials: 0 is outside" --trials 0
refused 2 "--weights is of one model" --weights x.gguf
refused 2 "--save is of one model" --category audio --save x.gguf
refused 2 "unexpected 'ds-cnn'" ds-cnn
refused 4 "$WORK/none.model: " --file "$WORK/none.model"
printf 'name: odd\ncategory: sensor\ninput: x 3x8\ny = x -> fold 3\n' >"$WORK/odd.model"
refused 4 "$WORK/odd.model" --file "$WORK/odd.model"
expect_text "$WORK/err" "fold"
printf 'name: DS-CNN\ncategory: sensor\ninput: x 4\ny = x -> dense 3\n' >"$WORK/taken.model"
refused 2 "another model that is built in is called 'ds-cnn'" --file "$WORK/taken.model" --trials 1
refused 2 "$WORK/taken.model" --file "$WORK/taken.model" --list
expect_exit 0 zoo --file "${INFERSTAT_SOURCE-$(dirname "$0")/../../..}/server/workload/zoo/models/ds-cnn.model" --list
expect_exit 4 zoo --model mobilenet-v1 --batch-size 16777216
expect_text "$WORK/err" "mobilenet-v1: a batch of 16777216 items needs "
expect_text "$WORK/err" "but device cpu has only "

# ---- Figures ----

expect_exit 0 zoo --list --json
expect_json 'len(o["models"]) == 34 and o["device"] is None and "p50_ns" not in m'
expect_json 'sum(x["category"] == "vision" for x in o["models"]) == 10'
expect_exit 0 zoo --list --category anchor
[ "$(wc -l <"$WORK/out")" -eq 5 ] || fail "not four anchors below a heading"

expect_exit 0 zoo --model DS-CNN,falldetect --trials 30 --warmups 2 --batch-size 1,3 --json
expect_json 'o["workload"] == "zoo" and o["status"] == "ok" and o["device"] == "cpu"'
expect_json 'o["threads"] == 1 and 0 < o["process_start_ns"] and 0 < o["binary_bytes"]'
expect_json '{"cpu", "kernel", "cpu_governor", "huge_pages", "allocator", "build_flags"} == set(o["fingerprint"])'
expect_json 'len(o["models"]) == 2 and m["category"] == "anchor" and m["parameters"] == 24908'
expect_json 'all(0 < x["p50_ns"] <= x["p95_ns"] <= x["p99_ns"] for x in o["models"])'
expect_json 'm["batch_size"] == 1 and m["trials"] == 30 and m["macs"] > 1000000 and m["start_ns"] > 0'
expect_json 'm["weight_bytes"] > 0 and m["activation_bytes"] > 0'
expect_json '[b["batch_size"] for b in m["batches"]] == [1, 3]'
expect_json 'm["best_items_per_second"] == max(b["items_per_second"] for b in m["batches"])'
expect_json 'all(0 < b["items_per_second"] * b["p50_ns"] / 1e9 / b["batch_size"] < 2.1 for b in m["batches"])'
expect_exit 0 zoo --model falldetect --until-steady 1 --repeats 7 --trials 5 --json
expect_json 'm["repeats"] == 5 and m["steady"] is True and m["items_per_second_median"] > 0'

expect_exit 0 zoo --model falldetect --model ds-cnn --trials 1 --batch-size 1 --batch-size 2
[ "$(awk 'NR > 1 && NF { print $2 } !NF { exit }' "$WORK/out" | tr '\n' ' ')" = "FallDetect ds-cnn " ] ||
  fail "not both models: $(cat "$WORK/out")"
[ "$(grep -c claimed "$WORK/out")" -eq 0 ] || fail "claims of all sensor models beside one"

expect_exit 0 zoo --category sensor --trials 2 --warmups 0
expect_text "$WORK/out" "means of"
expect_text "$WORK/out" "FallDetect"
[ "$(grep -c '^sensor ' "$WORK/out")" -eq 11 ] || fail "not ten models and their mean"

# ---- Files ----

printf 'name: mine\ncategory: sensor\ntask: a test\ninput: x 4\ny = x -> dense 8 relu -> dense 3\n' >"$WORK/mine.model"
expect_exit 0 zoo --file "$WORK/mine.model" --save "$WORK/mine.gguf" --trials 1 --json
expect_json 'm["name"] == "mine" and m["parameters"] == 67 and m["task"] == "a test"'
expect_exit 0 zoo --file "$WORK/mine.model" --weights "$WORK/mine.gguf" --trials 1 --json
expect_exit 0 zoo --file "$WORK/mine.model" --trials 1
expect_text "$WORK/out" "mine"
[ "$(grep -c claimed "$WORK/out")" -eq 0 ] || fail "claims of a model from a file"
refused 4 "$WORK/mine.gguf" --model ds-cnn --weights "$WORK/mine.gguf"
refused 4 "$WORK/odd.model" --file "$WORK/mine.model" --weights "$WORK/odd.model"

# ---- Nothing to compress, and no LAPACKE ----

printf 'name: pool\ninput: x 3x8x8\ny = x -> maxpool 2\n' >"$WORK/pool.model"
refused 2 "pool: no layer has weights to compress" --file "$WORK/pool.model" --trials 1 --compress int8
refused 2 "pool: no layer has fewer weights" --file "$WORK/pool.model" --trials 1 --compress lowrank:2
refused 2 "mine: no layer has so many weights to prune" --file "$WORK/mine.model" --trials 1 --compress prune:0.001
mkdir "$WORK/none"
echo "no library" >"$WORK/none/liblapacke.so.3"
expect_exit 4 env LD_LIBRARY_PATH="$WORK/none" "$WORKER" --device cpu zoo --no-report --model ds-cnn,resnet-8 \
  --trials 1 --compress lowrank:2
expect_text "$WORK/err" "install LAPACKE"
expect_text "$WORK/out" "failed before the end: 1 of 2 models were measured"

# ---- A stop ----

start worker "$WORKER" --device cpu zoo --no-report --model ds-cnn --duration 1h --json
sleep 0.5
stop worker INT 130
tail -n 1 "$WORK/worker.log" >"$WORK/out"
expect_json 'o["status"] == "cancelled" and m["trials"] > 0 and m["p50_ns"] > 0'
start worker "$WORKER" --device cpu zoo --no-report --model ds-cnn,resnet-8 --duration 1h
sleep 0.5
stop worker INT 130
expect_text "$WORK/worker.log" "stopped before the end: 1 of 2 models were measured"

# ---- Records ----

command -v "$INFERSTATD" >/dev/null || exit 0

expect_sql() {
  local got
  got=$(sqlite3 -readonly "$DB" "$2")
  [ "$got" = "$1" ] || fail "'$got', not '$1': $2"
}

start_collector --log-level info
expect_exit 0 "$WORKER" --collector "$COLLECTOR" --device cpu zoo --model ds-cnn,falldetect \
  --trials 20 --warmups 4 --batch-size 1,5 --json
expect_json 'o["records_acknowledged"] == o["records_produced"] and o["records_dropped"] == 0'
# An inference that ends the start, then warm-ups and trials of each batch size.
expect_sql "FallDetect|25|24
ds-cnn|25|24" "select model, sum(items = 1), sum(items = 5) from v_inference group by model order by model"
expect_sql 98 "select count(*) from v_inference where finish = 'stop' and prompt_tokens is null
  and generated_tokens is null and ttft_ns is null and e2e_ns > 0"
expect_sql "device_selection read_header model_building" "select group_concat(stage, ' ') from
  (select stage from v_load_stage where model = 'ds-cnn' order by ordinal)"
expect_sql "load_model first_inference" "select group_concat(stage, ' ') from
  (select stage from v_load_stage where model is null order by ordinal)"
expect_sql "ds-cnn|zoo|anchor|f32|24908" "select name, format, architecture, quantisation, parameters
  from v_model where name = 'ds-cnn'"
expect_sql "zoo FallDetect 1|20
zoo FallDetect 5|100
zoo ds-cnn 1|20
zoo ds-cnn 5|100" "select operation, items from v_operation order by operation"
expect_sql 24908 "select extra ->> 'parameters' from v_operation where operation = 'zoo ds-cnn 1'"
expect_sql 1 "select abs(duration_ns - 20 * (extra ->> 'p50_ns')) < duration_ns from v_operation
  where operation = 'zoo ds-cnn 1'"

"$WORKER" --device cpu zoo --no-report --file "$WORK/mine.model" --trials 1 --save "$WORK/mine.gguf" >/dev/null
expect_exit 0 "$WORKER" --collector "$COLLECTOR" --device cpu zoo --file "$WORK/mine.model" \
  --weights "$WORK/mine.gguf" --trials 1
expect_sql "device_selection file_opening read_header model_building" "select group_concat(stage, ' ')
  from (select stage from v_load_stage where model = 'mine' order by ordinal)"
expect_sql "gguf|$(stat -c %s "$WORK/mine.gguf")" "select format, file_bytes from v_model where name = 'mine'"

# The compressed model is one of its own, with an object of losses beside its original.
"$WORKER" --collector "$COLLECTOR" --device cpu zoo --model resnet-8 --trials 2 \
  --compress int8 --clip mse --inputs 4 --json >"$WORK/int8.json"
python3 - "$WORK/int8.json" <<'EOF'
import json, sys
row, = json.load(open(sys.argv[1]))["models"]
small = row["compressed"]
assert small["name"] == "resnet-8-int8", small
assert 3 < small["weight_ratio"] < 4 and small["below_100_kb"] is True, small
assert 0 < small["output_error"] < 0.2 and small["top1_agreement"] > 0.5, small
EOF
expect_sql "resnet-8|f32
resnet-8-int8|int8" "select name, quantisation from v_model where name like 'resnet-8%' order by name"
expect_exit 2 "$WORKER" --device cpu zoo --no-report --model resnet-8 --compress int3
expect_exit 2 "$WORKER" --device cpu zoo --no-report --model resnet-8 --clip mse

# A load that fails is recorded with its reason; a file that describes no model is a wrong argument.
expect_exit 4 "$WORKER" --collector "$COLLECTOR" --device cpu zoo --model ds-cnn --weights "$WORK/mine.gguf"
expect_sql "ds-cnn" "select model from v_load where status = 'error' and error like '%x.1.weight%missing%'"
expect_exit 4 "$WORKER" --collector "$COLLECTOR" --device cpu zoo --file "$WORK/odd.model"
expect_sql 1 "select count(*) from v_load where status = 'error'"
"$INFERSTAT" --collector "$COLLECTOR" now >"$WORK/out"
[ "$(grep -c odd "$WORK/out")" -eq 0 ] || fail "a wrong file is a model: $(cat "$WORK/out")"
stop collector
