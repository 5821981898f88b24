#!/usr/bin/env bash
# The client against a real collector and a real worker: exit codes, the same
# answers from collector and file, live records, clearing.
. "$(dirname "$0")/../support/lib.sh"

export INFERSTAT_COLLECTOR=$COLLECTOR

# ---- Nobody there -----------------------------------------------------------------

SECONDS=0
for command in ping summary "loads --json" "runs --csv" tail "export --json" "avg ttft_ns --json" \
  "clear --yes"; do
  # shellcheck disable=SC2086 # commands with their words
  expect_exit 4 "$INFERSTAT" --timeout 200ms $command
  expect_text "$WORK/err" "inferstat: collector $COLLECTOR: nothing listens there"
  [ ! -s "$WORK/out" ] || fail "$command wrote without an answer"
done
[ "$SECONDS" -lt 60 ] || fail "giving up takes too long"
expect_exit 4 "$INFERSTAT" --db "$DB" loads
# At once, however long it would wait for an answer: without the folder, without a socket in it,
# with a socket that no process has, and at a port.
mkdir -m 700 "$WORK/empty" "$WORK/dead"
python3 - "$WORK/dead/query" <<'END'
import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])
END
port=$(python3 -c "import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])")
SECONDS=0
for address in "ipc://$WORK/none" "ipc://$WORK/empty" "ipc://$WORK/dead" "tcp://127.0.0.1:$port"; do
  expect_exit 4 "$INFERSTAT" --timeout 60s --collector "$address" ping
  expect_text "$WORK/err" "inferstat: collector $address: nothing listens there"
done
[ "$SECONDS" -lt 20 ] || fail "no collector is found out only after $SECONDS s"

# ---- Nothing there ----------------------------------------------------------------

start_collector --log-level info
expect_exit 0 "$INFERSTAT" ping
expect_exit 3 "$INFERSTAT" summary
expect_exit 3 "$INFERSTAT" loads --json
[ "$(cat "$WORK/out")" = '{"rows": []}' ] || fail "an empty listing is no empty list"
expect_exit 3 "$INFERSTAT" avg ttft_ns
expect_exit 3 "$INFERSTAT" export

# ---- Live -------------------------------------------------------------------------

start tail "$INFERSTAT" tail --json
start tail_inferences "$INFERSTAT" tail inference --limit 3
start tail_file "$INFERSTAT" --db "$DB" tail inferences --limit 3
start tail_nothing "$INFERSTAT" tail --host nobody
sleep 0.5 # until they have subscribed; records before that are not live

"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null 2>&1
"$WORKER" llm --model "$WORK/tiny.gguf" --requests 5 --tokens 8 >/dev/null 2>"$WORK/worker.log" ||
  fail "the worker failed"

wait_ended tail_inferences 20
wait_ended tail_file 20
for name in tail_inferences tail_file; do
  [ "$(grep -c '  inference   host=' "$WORK/$name.log")" -eq 3 ] || fail "$name: not 3 inferences"
done
inferences_seen() { [ "$(grep -c '"kind": "inference"' "$WORK/tail.log")" -eq 5 ]; }
wait_until 20 inferences_seen
stop tail INT
while read -r line; do
  python3 -c 'import json, sys; json.loads(sys.argv[1])["kind"]' "$line" ||
    fail "tail: not JSON: $line"
done <"$WORK/tail.log"
[ ! -s "$WORK/tail_nothing.log" ] || fail "a filtered tail shows other records"

# A collector that goes away and comes back.
stop collector
wait_until 20 grep -q "warning: tail: collector $COLLECTOR: no answer" "$WORK/tail_nothing.log"
start_collector --log-level info
wait_until 20 grep -q "^inferstat: tail: the collector answers again" "$WORK/tail_nothing.log"
wait_until 20 grep -q "made again: records of the time between may be missing" "$WORK/tail_nothing.log"
[ "$(grep -vc "may be missing" "$WORK/tail_nothing.log")" -eq 2 ] || fail "tail repeats that the collector is away"
# Away for less time than it takes to notice.
stop collector
start_collector --log-level info
told_again() { [ "$(grep -c "may be missing" "$WORK/tail_nothing.log")" -eq 2 ]; }
wait_until 20 told_again
stop tail_nothing INT

# ---- The same answers from collector and file --------------------------------------

closed() { [ "$(sqlite3 -readonly "$DB" 'select count(*) from run where "end" = 1')" -eq 1 ]; }
wait_until 20 closed
# As if the device had been measured, which a worker does for the next one.
sqlite3 "$DB" 'pragma busy_timeout = 20000' \
  'update device set memory_bandwidth_bytes_per_second = 2e10' >"$WORK/out"
about=host,device,uuid,driver,sampled_ns,memory_bytes # of a file, what closed with it is present
for command in "summary --json" "loads --json" "inferences --json" "inferences --csv" "runs --json" \
  "avg tokens_per_second --by model,host --json" "avg load_stage.duration_ns --by stage" \
  "avg mbu_ratio --by model,device,run --json" "avg mbu_ratio --step 1m --csv" \
  "inferences --slowest 3 --json" "loads --average" "loads --average --by host --csv" "fleet --json" \
  "loads" "runs" "export" "export --json" "export inference --csv" "inferences --since 1h --json" \
  "devices --json --fields $about" "devices --since 1h --json --fields $about,samples"; do
  # shellcheck disable=SC2086 # commands with their words
  {
    expect_exit 0 "$INFERSTAT" $command
    cp "$WORK/out" "$WORK/asked"
    expect_exit 0 "$INFERSTAT" --db "$DB" $command
  }
  cmp "$WORK/asked" "$WORK/out" || fail "$command: collector and file differ"
done
# Again and again, until a signal ends it.
start watch "$INFERSTAT" --db "$DB" loads --watch 1s --csv
watched() { [ "$(grep -c '^run,' "$WORK/watch.log")" -eq 2 ]; }
SECONDS=0
wait_until 10 watched
[ "$SECONDS" -ge 1 ] || fail "--watch 1s did not wait"
stop watch INT 130
[ "$(grep -c ',tiny,' "$WORK/watch.log")" -eq 2 ] || fail "not the same row again"
# Above a table stands when it was made, and the zone of times.
made_twice() { [ "$(grep -cE "^20[0-9-]{8} [0-9:]{8} ${shown#* }$" "$WORK/watch_table.log")" -eq 2 ]; }
for shown in "--utc UTC" "--wide LOC"; do
  TZ=LOC-14 start watch_table "$INFERSTAT" --db "$DB" loads --watch 1s "${shown% *}"
  wait_until 10 made_twice
  stop watch_table INT 130
done
# Times are local, or of UTC; --wide has columns for which there is no room.
export TZ=LOC-14 # 14 hours before UTC
expect_exit 0 "$INFERSTAT" loads
local_time=$(grep -oE '[0-9]{2}:[0-9]{2}:[0-9]{2}' "$WORK/out")
expect_exit 0 "$INFERSTAT" loads --utc
utc_time=$(grep -oE '[0-9]{2}:[0-9]{2}:[0-9]{2}' "$WORK/out")
[ $(((10#${local_time%%:*} - 10#${utc_time%%:*} + 24) % 24)) -eq 14 ] ||
  fail "$utc_time is no time of UTC where it is $local_time"
unset TZ
columns_of() { # OPTION...: the number of columns on a terminal of 80
  script -qec "stty cols 80; '$INFERSTAT' inferences $*" /dev/null </dev/null | sed -n 1p | wc -w
}
if command -v script >/dev/null; then
  [ "$(columns_of --wide)" -gt "$(columns_of)" ] || fail "--wide has no more columns"
fi
# More of the device's bandwidth than there is cannot be: it is marked.
set_bandwidth() {
  sqlite3 "$DB" 'pragma busy_timeout = 20000' \
    "update device set memory_bandwidth_bytes_per_second = $1" >"$WORK/out"
}
set_bandwidth 1e15
expect_exit 0 "$INFERSTAT" avg mbu_ratio
! grep -q '%!\|over 1' "$WORK/out" || fail "marked: $(cat "$WORK/out")"
set_bandwidth 1e3
expect_exit 0 "$INFERSTAT" avg inference.mbu_ratio
grep -q ' %! .* %! ' "$WORK/out" || fail "not marked: $(cat "$WORK/out")"
expect_text "$WORK/out" "Note: over 1 is more than the device's measured memory bandwidth"
expect_exit 0 "$INFERSTAT" avg mbu_ratio --json
expect_text "$WORK/out" '"note": "over 1 is more than'
expect_exit 0 "$INFERSTAT" inferences --json
counted=$(python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
print(len(rows), sum(row["generated_tokens"] for row in rows))' "$WORK/out")
[ "$counted" = "$(sqlite3 -readonly -separator ' ' "$DB" \
  'select count(*), sum(generated_tokens) from inference')" ] || fail "counts differ: $counted"
expect_exit 0 "$INFERSTAT" export inference --csv --output "$WORK/out.csv"
[ "$(wc -l <"$WORK/out.csv")" -eq 6 ] || fail "the exported CSV has not 5 rows"

# Like a backup it never replaces a file, nor one by a link, and writes to what is no file as it is;
# what cannot be answered leaves no file.
ln -s out.csv "$WORK/link.csv"
ln -s missing.csv "$WORK/dangling.csv"
for name in out link dangling; do
  expect_exit 4 "$INFERSTAT" export load --csv --output "$WORK/$name.csv"
  expect_text "$WORK/err" "$WORK/$name.csv: already exists (name another file, or remove it)"
done
[ "$(wc -l <"$WORK/out.csv")" -eq 6 ] || fail "export writes to a file that exists"
[ ! -e "$WORK/missing.csv" ] || fail "export writes through a dangling link"
expect_exit 0 "$INFERSTAT" export load --csv --output /dev/stdout
[ "$(wc -l <"$WORK/out")" -eq 2 ] || fail "the CSV on standard output has not 1 row"
expect_exit 0 "$INFERSTAT" export load --csv --output /proc/self/fd/1
[ "$(wc -l <"$WORK/out")" -eq 2 ] || fail "the CSV on the descriptor of standard output has not 1 row"
shared=$(mktemp /dev/shm/inferstat-export.XXXXXX) || fail "no file in /dev/shm"
expect_exit 4 "$INFERSTAT" export load --csv --output "$shared"
rm -f "$shared"
expect_text "$WORK/err" "already exists"
expect_exit 3 "$INFERSTAT" export load --csv --host nobody --output "$WORK/new.csv"
expect_exit 4 "$INFERSTAT" export load --csv --output "$WORK/none/out.csv"
limited() { (ulimit -f 1 && exec "$@"); } # no file grows beyond 1 KiB
expect_exit 4 limited "$INFERSTAT" export --output "$WORK/new.csv"
expect_text "$WORK/err" "$WORK/new.csv was not written"
[ "$(find "$WORK" -name 'new.csv*' | wc -l)" -eq 0 ] || fail "export leaves files behind"

# ---- Output that cannot be written ---------------------------------------------------

"$INFERSTAT" export | head -n 1 >"$WORK/out" || [ "${PIPESTATUS[0]}" -eq 141 ] ||
  fail "a closed pipe is no failure of its own"
if "$INFERSTAT" export >/dev/full 2>"$WORK/err"; then
  fail "a full disk went unnoticed"
fi
expect_text "$WORK/err" "cannot"

# ---- Clearing -----------------------------------------------------------------------

expect_exit 2 "$INFERSTAT" clear
expect_text "$WORK/err" "give --yes"
expect_exit 4 "$INFERSTAT" --db "$DB" clear --yes
expect_text "$WORK/err" "in use by"
if command -v script >/dev/null; then # a terminal to be asked on
  echo n | script -qec "'$INFERSTAT' clear" /dev/null >"$WORK/out" || fail "a no is no failure"
  expect_text "$WORK/out" "Clear ALL records"
  expect_text "$WORK/out" "nothing was cleared"
  echo n | script -qec "'$INFERSTAT' forget --key gpu07" /dev/null >"$WORK/out" ||
    fail "a no is no failure"
  expect_text "$WORK/out" "Forget all runs of gpu07, with their records in"
  expect_text "$WORK/out" "nothing was forgotten"
  expect_exit 0 "$INFERSTAT" inferences
  echo y | script -qec "'$INFERSTAT' clear --model tiny" /dev/null >"$WORK/out" ||
    fail "a yes is no failure"
  expect_text "$WORK/out" "the records of model tiny"
  expect_exit 3 "$INFERSTAT" inferences
fi
expect_exit 0 "$INFERSTAT" clear --yes --json
expect_text "$WORK/out" '{"cleared": '
expect_exit 3 "$INFERSTAT" devices
expect_exit 0 "$INFERSTAT" runs # runs and their ledgers stay
expect_exit 0 "$INFERSTAT" summary

# ---- Without a collector, through the file -------------------------------------------

stop collector
expect_exit 0 "$INFERSTAT" --db "$DB" runs
expect_exit 0 "$INFERSTAT" --db "$DB" clear --yes
