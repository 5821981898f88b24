#!/usr/bin/env bash
# Alerts of a real engine: pending, firing, resolved; a collector that is killed in between;
# acknowledgement, silence, reload of the rules, and the check of a file.
. "$(dirname "$0")/../support/lib.sh"

export INFERSTAT_COLLECTOR=$COLLECTOR
rules=$WORK/rules
# What a terminal, SQL and JSON could take for their own.
name=$'a"b\'c\\d;--'

# engine RATE: that many requests a second.
engine() {
  start engine env INFERSTAT_HOST="$name" INFERSTAT_RUN_DIR="$WORK/run" \
    INFERSTAT_SPOOL="$WORK/spool" \
    "$FAULT_ENGINE" --shared "$WORK/shared" --threads 1 --mix inferences --rate "$1"
}
start_both() { start_collector --alerts "$rules" --alerts-every 500ms; }

# is STATE: whether the alert `busy` has that state, whatever else there is.
is() {
  "$INFERSTAT" alerts --history --json >"$WORK/history" || true
  "$INFERSTAT" alerts --json >"$WORK/open" || true
  python3 - "$WORK/open" "$WORK/history" "$1" "$name" <<'EOF'
import json, sys
rows = {row["id"]: row for file in sys.argv[1:3] for row in json.load(open(file))["rows"]
        if row["rule"] == "busy"}
assert len(rows) == 1, rows
row = list(rows.values())[0]
assert row["state"] == sys.argv[3] and row["host"] == sys.argv[4], row
EOF
}

echo 'alert busy: avg e2e over 10s when count > 20' >"$rules"
expect_exit 2 "$INFERSTATD" --check-config --listen "$COLLECTOR" --db "$DB" --alerts "$rules"
expect_text "$WORK/err" "rules: line 1: column 17:"
expect_exit 2 "$INFERSTAT" alerts rules --check "$rules"
expect_text "$WORK/err" "rules: line 1: column 17:"
expect_exit 4 "$INFERSTAT" alerts rules --check "$WORK/none"
cat >"$rules" <<'EOF'
# requests in ten seconds
alert busy: avg e2e_ns by host over 10s when count > 20 for 6s clear 15
EOF
expect_exit 0 "$INFERSTATD" --check-config --listen "$COLLECTOR" --db "$DB" --alerts "$rules"
expect_exit 0 "$INFERSTAT" alerts rules --check "$rules"
expect_text "$WORK/out" "avg e2e_ns by host over 10s when count > 20 for 6s clear 15"

# What rules do whatever the data is told without a collector.
{
  echo 'alert ever: avg e2e_ns over 1h when count > 4 least 5'
  echo 'alert never: avg tokens_per_second over 1h when p95 < 0'
  echo 'alert cold: avg device_sample.temperature_celsius over 1h when min < 0C'
} >"$WORK/certain"
expect_exit 0 "$INFERSTAT" alerts rules --check "$WORK/certain" --csv
expect_text "$WORK/out" "ever,1,,,it holds for every group that has values,"
expect_text "$WORK/out" "never,2,,,it never holds,"
expect_text "$WORK/out" "cold,3,,,,"

# What the lines of hooks need.
check_hook() { # its line, what is wrong with it
  { cat "$rules" && echo "hook h: $1"; } >"$WORK/hooks"
  expect_exit 2 "$INFERSTAT" alerts rules --check "$WORK/hooks"
  expect_text "$WORK/err" "hooks: line 3: $2"
}
check_hook "pigeon /bin/true" 'column 9: unknown kind of hook "pigeon"'
check_hook "webhook ftp://x/" 'column 17: a webhook needs a URL'
check_hook "webhook http://x:99999/" 'column 17: a webhook needs a URL'
check_hook "webhook http:///x" 'column 17: a webhook needs a URL'
check_hook "command cat" 'column 17: a command needs an absolute path'
check_hook "command /nowhere/x" 'hook h: /nowhere/x is not an executable file'
check_hook "command $WORK" "hook h: $WORK is not an executable file"
check_hook "command $WORK/hooks" "hook h: $WORK/hooks is not an executable file"
expect_exit 2 "$INFERSTATD" --check-config --listen "$COLLECTOR" --db "$DB" --alerts "$WORK/hooks"
{ cat "$rules" && echo "hook h: command /bin/true"; } >"$WORK/hooks"
expect_exit 0 "$INFERSTAT" alerts rules --check "$WORK/hooks"

start_both
expect_exit 3 "$INFERSTAT" alerts
expect_exit 0 "$INFERSTAT" alerts --check
engine 10
wait_until 20 is pending
expect_exit 0 "$INFERSTAT" alerts --check
stop collector KILL
start_both
wait_until 40 is firing
expect_exit 1 "$INFERSTAT" alerts --check
expect_text "$WORK/err" "1 alert fires"
expect_exit 0 "$INFERSTAT" alerts --host "$name"
expect_text "$WORK/out" "warning"

# A restart neither fires again nor forgets.
id=$(sqlite3 -readonly "$DB" "SELECT id FROM alert WHERE rule = 'busy'")
stop collector KILL
start_both
wait_until 10 is firing
sleep 2
is firing || fail "it does not fire any more, or twice"
[ "$(sqlite3 -readonly "$DB" "SELECT id FROM alert WHERE rule = 'busy'")" = "$id" ] ||
  fail "another alert"

expect_exit 0 "$INFERSTAT" alerts ack "$id" --text $'it\'s "me"\e[31m'
expect_exit 0 "$INFERSTAT" alerts
expect_text "$WORK/out" "acknowledged by user $(id -un || true): it's \"me\""
if grep -q $'\e' "$WORK/out"; then fail "an escape reached the terminal"; fi
expect_exit 3 "$INFERSTAT" alerts ack 4711
expect_exit 2 "$INFERSTAT" alerts ack
expect_exit 2 "$INFERSTAT" alerts silence busy
expect_exit 2 "$INFERSTAT" alerts silence --for 2h
expect_text "$WORK/err" "a silence needs a rule"
expect_exit 3 "$INFERSTAT" alerts silence bussy --for 2h
expect_text "$WORK/err" "did you mean busy?"
expect_exit 0 "$INFERSTAT" alerts silence busy --host "$name" --for 2h --text known --json
silence=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["rows"][0]["id"])' "$WORK/out")
expect_exit 0 "$INFERSTAT" alerts --check
expect_text "$WORK/out" "silenced until"
expect_exit 0 "$INFERSTAT" alerts silences
expect_text "$WORK/out" known
expect_exit 0 "$INFERSTAT" alerts unsilence "$silence"
expect_exit 1 "$INFERSTAT" alerts --check
expect_exit 0 "$INFERSTAT" alerts silence --host 'a?b*' --for 2h
expect_exit 0 "$INFERSTAT" alerts --check
expect_exit 0 "$INFERSTAT" alerts unsilence "$((silence + 1))"
expect_exit 0 "$INFERSTAT" audit --admin
expect_text "$WORK/out" "alert acknowledge"
expect_text "$WORK/out" "alert silence"

# A file that is wrong changes nothing; a right one is taken, and keeps what it keeps.
cp "$rules" "$WORK/right"
echo 'hook h: command /nowhere/x' >>"$rules"
kill -HUP "${started_pids[collector]}"
wait_until 5 grep -q "is not an executable file (the previous ones stay)" "$WORK/collector.log"
wait_until 5 has_rows "alert_config WHERE kind = 'file'" 1
# Why is noted although that fails at first.
sqlite3 "$DB" ".timeout 10000" "ALTER TABLE alert_config RENAME TO hidden"
echo 'alert busy' >"$rules"
kill -HUP "${started_pids[collector]}"
wait_until 5 grep -q "a colon (the previous ones stay)" "$WORK/collector.log"
sleep 2
sqlite3 "$DB" ".timeout 10000" "ALTER TABLE hidden RENAME TO alert_config"
wait_until 5 has_rows "alert_config WHERE kind = 'file' AND error LIKE '%line 1%'" 1
is firing || fail "a wrong file took effect"
expect_exit 0 "$INFERSTAT" alerts
expect_text "$WORK/out" "trouble:"
expect_text "$WORK/out" "rules: line 1"
expect_exit 0 "$INFERSTAT" alerts trouble --json
python3 -c 'import json, sys
row, = json.load(open(sys.argv[1]))["rows"]
assert row["kind"] == "file" and row["name"] is None and row["since_ns"] > 0, row' "$WORK/out"
{
  cat "$WORK/right"
  echo 'alert always: avg e2e_ns by host over 1h when max > 0s'
} >"$rules"
kill -HUP "${started_pids[collector]}"
wait_until 5 grep -q "were read again" "$WORK/collector.log"
wait_until 5 has_rows "alert WHERE rule = 'always'" 1
is firing || fail "a reload ended the alert"
expect_exit 3 "$INFERSTAT" alerts trouble
for options in "" "--collector $COLLECTOR"; do # both are the same one
  # shellcheck disable=SC2086
  expect_exit 0 "$INFERSTAT" $options alerts rules --check "$rules"
  expect_text "$WORK/out" "it holds for every group"
done
{ cat "$WORK/right" && echo 'hook h: command /nowhere/x'; } >"$rules"

# Slower it is good; after a minute of that, most of which is put into the store here, it is over.
stop engine
engine 1
good="alert WHERE rule = 'busy' AND good_ns >= 0"
wait_until 30 has_rows "$good" 1
stop collector KILL
sqlite3 "$DB" ".timeout 10000" "UPDATE alert SET good_ns = 59000000000 WHERE rule = 'busy' AND good_ns >= 0"
start_both
wait_until 10 is resolved
expect_exit 0 "$INFERSTAT" alerts trouble
expect_text "$WORK/out" "line 3: hook h: /nowhere/x is not an executable file"
cp "$WORK/right" "$rules"
expect_exit 0 "$INFERSTAT" alerts --check
expect_exit 0 "$INFERSTAT" alerts --history --since 1h
expect_text "$WORK/out" resolved
stop engine
stop collector
expect_exit 0 "$INFERSTAT" alerts --history --db "$DB"
expect_text "$WORK/out" resolved
expect_exit 3 "$INFERSTAT" --db "$DB" alerts ack "$id"
expect_exit 0 "$INFERSTAT" --db "$DB" alerts silence --for 1h --all
expect_exit 0 "$INFERSTAT" --db "$DB" alerts rules --check "$rules"
