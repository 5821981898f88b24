#!/usr/bin/env bash
# `inferstat audit` over a real collector and over its file: while records come in,
# through crashes and clearing, and with the store tampered with.
# shellcheck disable=SC2119  # a collector needs no more options than it has
. "$(dirname "$0")/../support/lib.sh"

export INFERSTAT_COLLECTOR=$COLLECTOR

expect_exit 4 "$INFERSTAT" --timeout 200ms audit
expect_exit 4 "$INFERSTAT" --db "$DB" audit
start_collector
expect_exit 3 "$INFERSTAT" audit
expect_text "$WORK/err" "inferstat: audit: no data: the store holds none"

# verdicts: how many runs have which, as "balanced unbalanced open unknown".
verdicts() {
  "$@" audit --json >"$WORK/audit.json" || [ $? -eq 1 ]
  python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
print(*(sum(row["verdict"] == v for row in rows) for v in ("balanced", "unbalanced", "open", "unknown")))
for row in rows:
    assert (row["finding"] is not None) == (row["verdict"] == "unbalanced"), row
    if row["verdict"] == "balanced":
        assert row["rows"] == row["stored"] - row["expired"] - row["cleared"], row' "$WORK/audit.json"
}

# ---- While records come in -----------------------------------------------------------

"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null 2>&1
start worker "$WORKER" llm --model "$WORK/tiny.gguf" --requests 400 --rate 200 --tokens 4
wait_until 20 has_rows inference 20
open=0
for _ in 1 2 3 4 5 6; do
  expect_exit 0 "$INFERSTAT" ping
  case $(verdicts "$INFERSTAT") in
    '0 0 1 0') open=1 ;; # under way, and nothing wrong
    '1 0 0 0') ;;
    *) fail "a run in flight: $(verdicts "$INFERSTAT")" ;;
  esac
  expect_exit 0 "$INFERSTAT" --db "$DB" audit
done
[ "$open" -eq 1 ] || fail "the run was never open"
wait_ended worker 60
all_closed() { [ "$(sqlite3 -readonly "$DB" 'select count(*) from run where "end" <> 1')" -eq 0 ]; }
wait_until 20 all_closed
[ "$(verdicts "$INFERSTAT")" = '1 0 0 0' ] || fail "a closed run does not balance"

# The same from collector and file, and through the collector's crash.
expect_exit 0 "$INFERSTAT" audit --csv
cp "$WORK/out" "$WORK/asked"
expect_exit 0 "$INFERSTAT" --db "$DB" audit --csv
cmp "$WORK/asked" "$WORK/out" || fail "collector and file differ"
start worker "$WORKER" llm --model "$WORK/tiny.gguf" --requests 100 --rate 100 --tokens 4
wait_until 20 has_rows inference 430
stop collector KILL
expect_exit 0 "$INFERSTAT" --db "$DB" audit
start_collector
wait_ended worker 60
wait_until 20 all_closed
[ "$(verdicts "$INFERSTAT")" = '2 0 0 0' ] || fail "after a crash: $(cat "$WORK/audit.json")"
# Where a terminal shows progress, the answer comes in pages.
if command -v script >/dev/null; then
  script -qec "'$INFERSTAT' audit" /dev/null </dev/null >"$WORK/out"
  expect_text "$WORK/out" "2 runs: 2 balanced"
fi

# Two at once: each is answered, or told that there is another.
for i in 1 2 3; do "$INFERSTAT" audit >"$WORK/at-once.$i" 2>&1 || true; done &
for i in 4 5 6; do "$INFERSTAT" audit >"$WORK/at-once.$i" 2>&1 || true; done
wait $!
for i in 1 2 3 4 5 6; do
  grep -qE '^2 runs: 2 balanced|another audit is under way' "$WORK/at-once.$i" ||
    fail "at once: $(cat "$WORK/at-once.$i")"
done

# ---- Tampered with -----------------------------------------------------------------------

sqlite3 "$DB" ".timeout 5000" "UPDATE ledger SET stored = stored + 1 WHERE run = 1 AND kind = 6"
for source in --collector=$COLLECTOR --db=$DB; do
  expect_exit 1 "$INFERSTAT" "$source" audit
  expect_text "$WORK/out" "unbalanced"
  expect_text "$WORK/out" "the ledger has"
  expect_text "$WORK/err" "inferstat: audit: 1 of "
done
sqlite3 "$DB" ".timeout 5000" "UPDATE ledger SET stored = stored - 1 WHERE run = 1 AND kind = 6"

# ---- Cleared --------------------------------------------------------------------------------

expect_exit 0 "$INFERSTAT" clear --yes --run "$(sqlite3 -readonly "$DB" 'select uuid from run where run = 1')" --json
[ "$(verdicts "$INFERSTAT")" = '2 0 0 0' ] || fail "cleared: $(cat "$WORK/audit.json")"
expect_text "$WORK/audit.json" '"rows": 0, "verdict": "balanced"'
sqlite3 "$DB" ".timeout 5000" "DELETE FROM operation WHERE run = 2 AND id = (SELECT max(id) FROM operation);
  DELETE FROM inference WHERE run = 2 AND id = (SELECT max(id) FROM inference)"
expect_exit 1 "$INFERSTAT" audit
stop collector
expect_exit 1 "$INFERSTAT" --db "$DB" audit
expect_text "$WORK/out" "is missing"
