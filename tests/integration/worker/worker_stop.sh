#!/usr/bin/env bash
# Ending a worker: signals at any moment, a collector that is not there.
. "$(dirname "$0")/../../support/lib.sh"

model=$WORK/tiny.gguf
"$WORKER" make-model --shape tiny "$model" >/dev/null

figure() {
  sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$WORK/worker.log" | tail -n 1
}

has_text() {
  [ "$(wc -c <"$WORK/worker.log")" -gt 200 ]
}

# In the middle of answers: what was under way is cancelled, all is counted.
for signal in TERM INT; do
  : >"$WORK/worker.log"
  start worker "$WORKER" llm --no-report --model "$model" --requests forever --json
  wait_until 20 has_text
  stop worker "$signal"
  [ "$stopped_code" -eq 0 ] || fail "SIG$signal: exit code $stopped_code"
  [ "$(figure requests)" -ge 1 ] || fail "no request was counted"
  [ $(($(figure completed) + $(figure cancelled))) -eq "$(figure requests)" ] ||
    fail "requests do not add up"
  [ "$(figure failed)" -eq 0 ] || fail "a stopped request counts as failed"
done

# Between repeats, or in the middle of one: what was done is summed up.
: >"$WORK/worker.log"
start worker "$WORKER" llm --no-report --model "$model" --until-steady 0.001 --repeats 1000 \
  --tokens 200 --json
wait_until 20 has_text
stop worker INT
tail -n 1 "$WORK/worker.log" >"$WORK/figures"
python3 - "$WORK/figures" <<'PYTHON' || fail "repeats that were stopped: $(cat "$WORK/figures")"
import json, sys
line = open(sys.argv[1], errors="replace").read()
figures = json.loads(line[line.index('{"workload"'):])
assert figures["repeats"] == figures["requests"] - figures["cancelled"], figures
assert figures["failed"] == 0 and figures["cancelled"] <= 1 and figures["steady"] is False, figures
PYTHON

# A limit on files is an answer to a write like another.
# shellcheck disable=SC2016 # words of that shell
expect_exit 4 bash -c 'ulimit -c 0 -f 8; exec "$0" encode --no-report --device cpu --encoder basis \
  --qubits 6 --batch-size 8 --batches 8 --output "$1"' "$WORKER" "$WORK/large.npy"
expect_text "$WORK/err" "cannot write: File too large"
for left in "$WORK/large.npy" "$WORK/large.npy.part"; do
  [ ! -e "$left" ] || fail "a part of a large file is left: $left"
done

# While it waits for the next request's time, and for a line of standard input.
: >"$WORK/worker.log"
start worker "$WORKER" llm --no-report --log-level info --model "$model" --requests forever \
  --rate 0.001 --tokens 3
wait_until 20 grep -q INFER "$WORK/worker.log"
stop worker
[ "$stopped_code" -eq 0 ] || fail "waiting for a request: exit code $stopped_code"

: >"$WORK/worker.log"
mkfifo "$WORK/lines"
exec {writer}<>"$WORK/lines"
start worker "$WORKER" llm --no-report --log-level info --model "$model" --tokens 3 \
  --prompt-file "$WORK/lines"
echo hello >&"$writer"
wait_until 20 grep -q INFER "$WORK/worker.log"
stop worker
[ "$stopped_code" -eq 0 ] || fail "waiting for a line: exit code $stopped_code"
exec {writer}>&-

# A pipe nobody writes to.
: >"$WORK/worker.log"
mkfifo "$WORK/silent"
start worker "$WORKER" llm --no-report --log-level info --model "$model" \
  --prompt-file "$WORK/silent"
wait_until 20 grep -q 'kernels:' "$WORK/worker.log"
stop worker
[ "$stopped_code" -eq 0 ] || fail "waiting for a writer: exit code $stopped_code"

# A pipe nobody reads from: it fills, then a stop ends the wait for room.
: >"$WORK/worker.log"
mkfifo "$WORK/unread"
exec {unread}<>"$WORK/unread"
# shellcheck disable=SC2016 # the inner shell expands
start worker env UNREAD="$WORK/unread" bash -c 'exec "$@" >"$UNREAD"' - "$WORKER" llm --no-report \
  --log-level info --model "$model" --requests forever
is_full() { # no room for one page more; dd does not wait for it
  ! dd if=/dev/zero of="$WORK/unread" bs=4096 count=1 oflag=nonblock
}
wait_until 20 grep -q INFER "$WORK/worker.log"
wait_until 20 is_full
stop worker
[ "$stopped_code" -eq 0 ] || fail "waiting for a reader: exit code $stopped_code"
exec {unread}>&-

# While a long prompt is computed: cancelled without a token, not when it is done.
: >"$WORK/worker.log"
"$WORKER" make-model --shape 42m "$WORK/large.gguf" >/dev/null
printf 'a long time ago %.0s' {1..60} >"$WORK/prompt"
start worker "$WORKER" --threads 1 --log-level info llm --no-report --model "$WORK/large.gguf" \
  --prompt-file "$WORK/prompt" --json
wait_until 20 grep -q 'kernels:' "$WORK/worker.log"
stop worker
[ "$stopped_code" -eq 0 ] || fail "while a prompt is computed: exit code $stopped_code"
[ "$(figure cancelled)" -eq 1 ] || fail "the request under way is not cancelled"
[ "$(figure generated_tokens)" -eq 0 ] || fail "a cancelled prompt has tokens"

# While a model is written: nothing of it is left.
is_written() {
  [ -n "$(find "$WORK" -name 'stopped.gguf.*' -size +8M)" ]
}
start worker "$WORKER" make-model --shape 8b "$WORK/stopped.gguf"
wait_until 20 is_written
stop worker TERM 130
[ -z "$(find "$WORK" -name 'stopped.gguf*')" ] || fail "a part of a model is left"

# While a model loads.
: >"$WORK/worker.log"
has_opened() {
  find "/proc/${started_pids[worker]}/fd" -lname "$model" | grep -q .
}
INFERSTAT_TEST_STAGE_DELAY=read_header:1500 start worker "$WORKER" llm --no-report --log-level info \
  --model "$model" --json
wait_until 20 has_opened
stop worker
[ "$stopped_code" -eq 0 ] || fail "while loading: exit code $stopped_code"
expect_text "$WORK/worker.log" "error=stopped while loading"
for key in model device startup_duration_ns duration_ns tokens_per_second; do
  expect_text "$WORK/worker.log" "\"$key\": null"
done

# Without a collector it serves, says so once, and ends within its deadline.
: >"$WORK/worker.log"
start worker "$WORKER" --collector "ipc://$WORK/run/nobody" llm --model "$model" --requests 20 \
  --rate 20 --tokens 5 --json
wait_ended worker 20
[ "$stopped_code" -eq 0 ] || fail "without a collector: exit code $stopped_code"
[ "$(figure completed)" -eq 20 ] || fail "without a collector not all requests were served"
[ "$(figure records_acknowledged)" -eq 0 ] || fail "nobody acknowledges"
[ "$(figure records_produced)" -ge 21 ] || fail "records were not made"
said=$(grep -c 'does not answer' "$WORK/worker.log") || true
[ "$said" -eq 1 ] || fail "it says $said times that the collector does not answer"
