#!/usr/bin/env bash
# What is slow, and why, of real workers: a request with more tokens than the others is
# found and blamed on them, loads of two runs are set side by side, and one host alone
# is not compared.
. "$(dirname "$0")/../support/lib.sh"

export INFERSTAT_COLLECTOR=$COLLECTOR
start_collector --log-level info
"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null 2>&1
worker() {
  "$WORKER" llm --model "$WORK/tiny.gguf" "$@" >/dev/null 2>"$WORK/worker.log" ||
    fail "the worker failed"
}
worker --requests 40 --tokens 4
worker --requests 1 --tokens 200
closed() { [ "$(sqlite3 -readonly "$DB" 'select count(*) from run where "end" = 1')" -eq 2 ]; }
wait_until 20 closed

# row NAME [FIELD VALUE]: that member of the first row of the JSON last printed, or of the
# first one with that value; nothing for null.
row() {
  python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
value = [row for row in rows if str(row.get(sys.argv[3])) == sys.argv[4]][0][sys.argv[2]]
print("" if value is None else value)' "$WORK/out" "$1" "${2-}" "${3-None}"
}

# On a busy machine another may be slower.
expect_exit 0 "$INFERSTAT" inferences --slowest 41 --metric decode_ns --json
longest() { row "$1" generated_tokens 200; }
[ "$(longest peers)" -eq 41 ] || fail "it is compared with $(longest peers) requests, not 41"
[ -n "$(longest blame)" ] || fail "nothing is blamed"
[ "$(longest tokens_excess_ns)" -gt 0 ] || fail "its many tokens account for nothing"
python3 -c 'import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    parts = [value for key, value in row.items() if key.endswith("_excess_ns")]
    assert len(parts) == 12 and sum(parts) == row["excess_ns"], row' "$WORK/out" ||
  fail "the parts do not sum to the excess"

# The slowest are those that plain SQL finds.
expect_exit 0 "$INFERSTAT" inferences --slowest 7 --csv
cut -d, -f9 "$WORK/out" | tail -n +2 >"$WORK/found"
sqlite3 -readonly "$DB" 'select e2e_ns from inference order by e2e_ns desc limit 7' >"$WORK/sql"
cmp "$WORK/found" "$WORK/sql" || fail "not the slowest seven"

expect_exit 0 "$INFERSTAT" loads --average --json
[ "$(row loads)" -eq 2 ] || fail "not both loads are averaged"
[ "$(row mean_ns | cut -d. -f1)" -eq "$(sqlite3 -readonly "$DB" \
  'select sum(duration_ns) / 2 from load')" ] || fail "their mean is not that of plain SQL"

mapfile -t runs < <(sqlite3 -readonly "$DB" 'select uuid from run order by run')
expect_exit 0 "$INFERSTAT" loads --compare --json "${runs[0]}" "${runs[1]}"
[ "$(row difference_ns | cut -d. -f1)" -eq "$(sqlite3 -readonly "$DB" \
  'select max(duration_ns * (run = 2)) - max(duration_ns * (run = 1)) from load')" ] ||
  fail "the difference of two loads is not that of plain SQL"

expect_exit 0 "$INFERSTAT" fleet
expect_text "$WORK/out" "fewer than 3 hosts have the model and device (1 at most)"
expect_exit 5 "$INFERSTAT" fleet --check
expect_exit 3 "$INFERSTAT" fleet --host nobody
