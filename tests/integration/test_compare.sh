#!/usr/bin/env bash
# `inferstat baseline` and `inferstat compare`, over a real collector and over its file:
# that both say the same.  What they print, and of other stores, is compared in tests/golden.
# shellcheck disable=SC2119  # a collector needs no more options than it has
. "$(dirname "$0")/../support/lib.sh"

export INFERSTAT_COLLECTOR=$COLLECTOR

expect_exit 4 "$INFERSTAT" --timeout 200ms baseline list
expect_exit 4 "$INFERSTAT" --timeout 200ms compare a b
"$MAKE_MEASURED" "$DB"
start_collector

# ---- Baselines ---------------------------------------------------------------------------

expect_exit 3 "$INFERSTAT" baseline list
for host in ordinary again slow few upgraded; do
  expect_exit 0 "$INFERSTAT" baseline save "$host" --host "$host"
  expect_text "$WORK/out" "baseline $host saved: "
done
expect_exit 0 "$INFERSTAT" baseline save slow --host slow --force --json
expect_text "$WORK/out" '"baseline": "slow", "values": 10254, "runs": 1'
expect_exit 3 "$INFERSTAT" baseline save nobody --host nobody
for words in save 'list --host slow' 'delete slow --force'; do
  # shellcheck disable=SC2086  # several words
  expect_exit 2 "$INFERSTAT" baseline $words
done
expect_exit 0 "$INFERSTAT" baseline list --csv
[ "$(wc -l <"$WORK/out")" -eq 6 ] || fail "not five baselines"

# ---- Verdicts ----------------------------------------------------------------------------

expect_exit 0 "$INFERSTAT" compare ordinary slow --margin 20%
expect_exit 0 "$INFERSTAT" compare --against ordinary --host again
expect_exit 5 "$INFERSTAT" compare ordinary slow --metric load.duration_ns
expect_exit 1 "$INFERSTAT" compare ordinary slow --metric busy_output_token_rate
expect_exit 5 "$INFERSTAT" compare ordinary slow --metric request_rate
for words in 'ordinary slow few' '' '--against ordinary slow' \
  'ordinary slow --host slow' 'ordinary slow --metric nothing' 'ordinary slow --margin 2' \
  'ordinary slow --json --markdown'; do
  # shellcheck disable=SC2086  # several words
  expect_exit 2 "$INFERSTAT" compare $words
done

# ---- Forms -------------------------------------------------------------------------------

expect_exit 1 "$INFERSTAT" compare ordinary slow --json
python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert len(rows) == 12, rows
demand = [r for r in rows if r["metric"] in ("request_rate", "output_token_rate", "prompt_token_rate")]
assert [r["verdict"] for r in demand] == [None] * 3, demand
errors = [r for r in rows if r["metric"] == "error_ratio"][0]
assert errors["verdict"] == "SAME" and errors["after_total"] == 0, errors
for row in rows:
    if row in demand or row == errors:
        continue
    load = row["metric"] == "load.duration_ns"
    total = row["metric"] == "busy_output_token_rate"
    assert row["verdict"] == ("UNDECIDED" if load else "WORSE"), row
    assert row["model"] == "stories | 15M" and row["device"] == "NVIDIA H200", row
    assert row["before_count"] == (2 if load else 1000), row
    assert abs(row["confidence"] - (1 - 0.05 / 12)) < 1e-9 or load, row # of 8 rows and 4 p95
    assert row["margin"] == 0.01, row
    assert row["before_coverage_ratio"] == row["after_coverage_ratio"] == 1, row
    if load:
        assert row["ratio_high"] is None and "too few values" in row["note"], row
        continue
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"] and row["note"] is None, row
    slower = row["unit"] == "ns"
    assert abs(row["ratio"] - (1.08 if slower else 1 / 1.08)) < 0.003, row
    what = "total" if total else "median"
    assert row["after_" + what] / row["before_" + what] == row["ratio"], row
    assert row["p99_verdict"] in (None, "UNDECIDED"), row # too few for it
' "$WORK/out"

# ---- The file says the same -----------------------------------------------------------------

same() {
  local code=$1
  shift
  expect_exit "$code" "$INFERSTAT" "$@"
  cp "$WORK/out" "$WORK/asked"
  expect_exit "$code" "$INFERSTAT" --db "$DB" "$@"
  cmp "$WORK/asked" "$WORK/out" || fail "collector and file differ: $*"
}
same 1 compare ordinary slow --json
same 1 compare --against ordinary --host slow --csv
same 0 baseline list --json
same 3 compare --models 'stories | 15M,stories | 15N'
expect_text "$WORK/err" 'no model is called "stories | 15N" (did you mean stories | 15M?)'
expect_exit 4 "$INFERSTAT" --db "$DB" baseline save other
expect_exit 4 "$INFERSTAT" --db "$DB" baseline delete slow
expect_exit 0 "$INFERSTAT" baseline delete again
expect_exit 3 "$INFERSTAT" baseline delete again

# Records come in while baselines are saved, and the baseline is of what was there.
"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null 2>&1
start worker "$WORKER" llm --model "$WORK/tiny.gguf" --requests 300 --rate 150 --tokens 4
wait_until 20 has_rows inference 4040
expect_exit 0 "$INFERSTAT" baseline save worker --model tiny
wait_ended worker 60
expect_exit 0 "$INFERSTAT" baseline list --json
python3 -c 'import json, sys
row = [r for r in json.load(open(sys.argv[1]))["rows"] if r["baseline"] == "worker"][0]
print_ = json.loads(row["fingerprint"])
model = print_["model"]["tiny"]
assert model["digest"] and model["quantisation"] and model["parameters"], print_
assert print_["machine"]["kernel"] and print_["machine"]["worker_version"], print_
assert row["filter"] == "model=tiny" and row["values"] > 0, row' "$WORK/out"
"$INFERSTAT" compare --against worker --model tiny --json >"$WORK/out" 2>"$WORK/err" ||
  case $? in 1 | 5) ;; *) fail "compared with itself: $(cat "$WORK/err")" ;; esac
expect_text "$WORK/out" '"metric": "ttft_ns"'

# Two models in one store, on one device.
"$WORKER" make-model --shape tiny --type f32 "$WORK/wide.gguf" >/dev/null 2>&1
start wide "$WORKER" llm --model "$WORK/wide.gguf" --requests 100 --tokens 4
wait_ended wide 60
for source in "$COLLECTOR" "$DB"; do
  option=--db
  [ "$source" = "$DB" ] || option=--collector
  "$INFERSTAT" "$option" "$source" compare --models tiny,wide --json >"$WORK/out" 2>"$WORK/err" ||
    case $? in 1 | 5) ;; *) fail "two models: $(cat "$WORK/err")" ;; esac
  [ "$option" = --db ] || cp "$WORK/out" "$WORK/asked"
done
cmp "$WORK/asked" "$WORK/out" || fail "collector and file differ about two models"
python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert {"e2e_ns", "load.duration_ns", "error_ratio"} <= {r["metric"] for r in rows}, rows
for row in rows:
    assert row["model"] == "tiny / wide" and row["differences"] is None, row
    assert row["before_quantisation"] == "F16" and row["after_quantisation"] == "F32", row
    assert row["parameters_ratio"] == 1 and 1.5 < row["file_bytes_ratio"] < 2.5, row
' "$WORK/out"
stop collector

# ---- Without a collector -----------------------------------------------------------------------

expect_exit 0 "$INFERSTAT" --db "$DB" baseline save again --host again
expect_exit 0 "$INFERSTAT" --db "$DB" compare ordinary again
expect_exit 0 "$INFERSTAT" --db "$DB" baseline delete again
expect_exit 3 "$INFERSTAT" --db "$DB" compare ordinary again
[ ! -e "$DB.lock" ] || expect_exit 0 "$INFERSTAT" --db "$DB" audit
chmod 0444 "$DB"
expect_exit 1 "$INFERSTAT" --db "$DB" compare ordinary slow
