#!/usr/bin/env bash
# What the owner sees of a collector from the command line: figures of the collector itself.
. "$(dirname "$0")/../support/lib.sh"

owner() { "$INFERSTAT" --collector "$COLLECTOR" "$@"; }

"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null 2>&1
start_collector
"$WORKER" --collector "$COLLECTOR" llm --model "$WORK/tiny.gguf" --requests 3 --tokens 4 \
  >/dev/null 2>"$WORK/worker.log" || fail "the worker failed"
wait_until 20 has_rows inference 3

# ---- Figures of the collector ----------------------------------------------------------------

PYTHONPATH=$(dirname "$0")/../support python3 - "$WORK/c/query" <<'END'
import sys
from zmtp_hands import Wire, frame, greeting, ready
wire = Wire(sys.argv[1])
wire.send(greeting())
wire.read(64)
wire.send(ready())
wire.read_frame()
wire.send(frame(b"no message"))
wire.read_frame()
END
measured() {
  expect_exit 0 owner ping --json
  python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
for key in ("memory_bytes", "disk_free_bytes", "commits", "commit_p50_ns", "log_bytes"):
    assert found[key] > 0, (key, found)
assert found["commit_p99_ns"] >= found["commit_p50_ns"], found
assert found["queue_messages"] == 0 and found["queue_bytes"] == 0, found
assert [key for key in found if key.startswith("rejected_") and found[key] > 0], found' "$WORK/out"
}
wait_until 20 measured
expect_exit 0 owner ping
grep -qE '^commit p99 +[0-9]' "$WORK/out" || fail "no commit p99"
! grep -q '^queue' "$WORK/out" || fail "an empty queue is shown"
expect_exit 0 "$INFERSTAT" --db "$DB" ping --json
expect_text "$WORK/out" '"memory_bytes": null'
stop collector
