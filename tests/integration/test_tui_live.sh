#!/usr/bin/env bash
# shellcheck disable=SC2119 # a collector without options
# The dashboard beside a real collector and a real worker: an empty store, records
# as they come, contact lost and found again, a clear.
. "$(dirname "$0")/../support/lib.sh"
. "$(dirname "$0")/../support/tui.sh"

"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null

# Before there is a collector it says so, at once, and quits at once.
open_terminal 80 24 "$INFERSTAT" top --collector "$COLLECTOR"
shows "connecting to $COLLECTOR"
press q
ended 0

open_terminal 80 24 "$INFERSTAT" top --collector "$COLLECTOR"
shows "no answer from $COLLECTOR"
start_collector
shows "● live"
shows "No records in $COLLECTOR yet"

# Records appear without a key pressed: the interval alone would take an hour.
press q
ended 0
open_terminal 80 24 "$INFERSTAT" top --collector "$COLLECTOR" --interval 1h
shows "No records in $COLLECTOR yet"
start worker "$WORKER" --collector "$COLLECTOR" llm --model "$WORK/tiny.gguf" \
  --prompt "once upon a time" --tokens 8 --requests 5
shows "tiny"
press 4
shows "model_building"
press 8
shows "5 requests"
shows "lost 0 · coverage 100.0 %"
wait_ended worker 30
press r
shows "closed"
shows "0 of 1 runs open"
press 1
shows "1 ended (o shows)"
press o
shows "· ended"
rows=$(sqlite3 -readonly "$DB" "select count(*) from inference")
[ "$rows" -eq 5 ] || fail "the screen says 5 requests, the store has $rows"
press q
ended 0

# So do runs of the pipeline, in a view of their own.
open_terminal 80 24 "$INFERSTAT" top --collector "$COLLECTOR" --interval 1h
shows "ended"
press 5
shows "Newest pipeline runs"
start encoder "$WORKER" --collector "$COLLECTOR" encode --encoder iqp --qubits 8 --batches 4
shows " encode "
wait_ended encoder 30
press 1
shows "Models"
press q
ended 0

# A filter is written, marked where it is wrong, applied, and taken back.
open_terminal 100 24 "$INFERSTAT" top --collector "$COLLECTOR"
press 3
shows "5 requests"
press "\\"
shows "Show only"
press -l 'where modle=tiny'
press Enter
shows 'column 7: unknown dimension "modle" (did you mean model?)'
shows "^~~~~"
press C-u
press -l 'model=nothingx'
press BSpace
press Enter
shows "nothing that the filter covers"
shows "model=nothing  "
press F4
shows "Show only"
press Left Left Left Left Left Left Left
press -l tiny # "model=tinynothing"
press DC DC DC DC DC DC DC
press End
press -l ' since 1h'
press Enter
shows "5 requests"
shows "model=tiny since 1h"
press F4
press C-u Escape
shows "model=tiny since 1h"
press F4
press C-u Enter
shows_not "model=tiny since"
shows "5 requests"
press q
ended 0

# answered_ms: the milliseconds until a key shows, the most of four keys in the ledger; no more,
# as after three seconds a query has failed and is in flight no longer.
answered_ms() {
  local begun key
  for key in h Escape h Escape; do
    begun=$(date +%s%N)
    press $key
    if [ $key = h ]; then shows "Keys"; else shows "Runs and losses"; fi
    echo $((($(date +%s%N) - begun) / 1000000))
  done | sort -n | tail -n 1
}

# A collector that has stopped answers nothing; keys are answered at once all the same.
open_terminal 80 24 "$INFERSTAT" top --collector "$COLLECTOR"
press 8
shows "5 requests"
live_ms=$(answered_ms)
# shellcheck disable=SC2154 # of lib.sh
kill -STOP "${started_pids[collector]}"
shows " old" # an answer is overdue: a query is in flight
stopped_ms=$(answered_ms)
kill -CONT "${started_pids[collector]}"
[ "$stopped_ms" -lt $((live_ms + 2000)) ] || fail "keys were answered after $stopped_ms ms, not $live_ms"
shows "● live"
press q
ended 0

# The collector goes: what is known stays, with its age; it comes back.
open_terminal 80 24 "$INFERSTAT" top --collector "$COLLECTOR"
press 8
shows "5 requests"
stop collector KILL
shows "reconnecting"
shows "✗ no answer"
shows "5 requests"
dead_ms=$(answered_ms)
[ "$dead_ms" -lt $((live_ms + 2000)) ] || fail "keys were answered after $dead_ms ms, not $live_ms"
shows "✗ no answer for"
start_collector
shows "● live"
shows_not "reconnecting"

# Clearing asks for the name of what is cleared; anything else clears nothing.
press c
shows "Clear all records of the store"
press -l "every"
press Enter
shows "until the text is exactly that"
press Escape
shows_not "Clear all records"
has_rows inference 5 || fail "half a word cleared the store"
press c
shows "Clear all records of the store"
press -l "everything"
press Enter
shows "cleared "
shows "0 requests"
[ "$(sqlite3 -readonly "$DB" "select count(*) from inference")" -eq 0 ] ||
  fail "the word did not clear the store"
press q
ended 0

open_terminal 80 24 "$INFERSTAT" top --collector "$COLLECTOR" --readonly
shows "● live"
press c
shows "not cleared: the dashboard was started with --readonly"
press q
ended 0

# A signal ends it as q does, also while nobody answers; so does Ctrl-\.
stop collector
open_pid() {
  open_terminal 80 24 bash -c \
    "ulimit -c 0; echo \$\$ >$WORK/pid; exec \"$INFERSTAT\" top --collector $COLLECTOR"
  shows "connecting"
}
open_pid
kill -TERM "$(cat "$WORK/pid")"
ended 0
open_pid
press "C-\\"
ended 0

# A fault ends it as faults do, and gives the terminal back.  Asked for, it is nothing
# that a sanitizer should report.
for variable in ASAN_OPTIONS TSAN_OPTIONS; do
  export "$variable=${!variable-}:handle_segv=0:handle_abort=0"
done
for signal in ABRT SEGV; do
  open_pid
  kill "-$signal" "$(cat "$WORK/pid")"
  shows "ended 1"
  given_back
done
