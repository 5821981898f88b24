#!/usr/bin/env bash
# What the owner sees of a collector from the command line: figures of the collector itself, and what
# was done to its store by whom.
# shellcheck disable=SC2119  # a collector needs no more options than it has
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
assert found["unsent_bytes"] == 0, found
assert [key for key in found if key.startswith("rejected_") and found[key] > 0], found' "$WORK/out"
}
wait_until 20 measured
expect_exit 0 owner ping
grep -qE '^commit p99 +[0-9]' "$WORK/out" || fail "no commit p99"
! grep -q '^queue' "$WORK/out" || fail "an empty queue is shown"
expect_exit 0 "$INFERSTAT" --db "$DB" ping --json
expect_text "$WORK/out" '"memory_bytes": null'

# ---- Who did what --------------------------------------------------------------------------------

who="user $(id -un || true)"
expect_exit 3 owner audit --admin
expect_exit 0 owner baseline save before --model tiny
expect_exit 0 owner backup "$WORK/backup.db"
expect_exit 4 owner backup "$WORK/backup.db"
expect_exit 0 owner clear --yes --model tiny --since 2020-01-01
expect_exit 0 owner import "$WORK/backup.db"
expect_exit 0 owner baseline delete before
run=$(sqlite3 -readonly "$DB" 'select uuid from run limit 1')
expect_exit 0 owner forget --yes --run "$run"
acts() { # of a source
  expect_exit 0 "$INFERSTAT" "$@" audit --admin --json
  python3 -c 'import json, sys
for act in json.load(open(sys.argv[1]))["rows"]:
    at = act["at_ns"]
    assert 1.5e18 < at < 5e18, act
    print(act["actor"], "|", act["action"], "|", act["detail"], "|", act["outcome"][:20], "|", act["rows"] > 0)
' "$WORK/out" >"$WORK/acts"
}
expect_exit 0 owner audit --json
python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
last = rows[-1]
assert last["run"] is None and last["verdict"] == "forgotten", last
assert last["finding"] == "1 removed runs, 1 of them on request", last
assert last["stored"] == last["produced"] == last["expired"] + last["cleared"] > 0, last
' "$WORK/out"
acts --collector "$COLLECTOR"
cat >"$WORK/expected" <<END
$who | forget | where run=$run | ok | True
$who | baseline delete | before | ok | True
$who | import | $WORK/backup.db | ok | True
$who | clear | where model=tiny since 2020-01-01T00:00:00Z | ok | True
$who | backup | $WORK/backup.db | BACKUP_THERE | False
$who | backup | $WORK/backup.db | ok | True
$who | baseline save | before | ok | True
END
sed -i "s|BACKUP_THERE|$(head -c 20 <<<"$WORK/backup.db: already exists")|" "$WORK/expected"
diff -u "$WORK/expected" "$WORK/acts" || fail "not what was done"
expect_text "$WORK/collector.log" "$who: clear "
expect_exit 3 owner audit --admin --until 2020-01-01

# In a file without a collector, and of a store that was restored.
stop collector
expect_exit 0 "$INFERSTAT" --db "$DB" clear --yes --host nobody
expect_exit 3 "$INFERSTAT" --db "$DB" forget --yes --run "$run"
expect_exit 0 "$INFERSTAT" restore "$WORK/backup.db" --db "$DB"
(cd "$WORK" && "$INFERSTAT" --db new.db restore backup.db >out) || fail "restore: a relative name of a new store"
acts --db "$WORK/new.db"
for folder in "" . "$WORK"; do
  (cd "$WORK" && expect_exit 2 "$INFERSTAT" restore backup.db --db "$folder") || fail "restore over a folder"
done
acts --db "$DB"
[ "$(head -n 1 "$WORK/acts")" = "$who, file | restore | $WORK/backup.db | ok | True" ] || fail "no restore: $(cat "$WORK/acts")"
acts --db "$DB".before-*Z
head -n 2 "$WORK/acts" | diff -u - <(
  echo "$who, file | forget | where run=$run | no run of ${run:0:10} | False"
  echo "$who, file | clear | where host=nobody | ok | False") || fail "not what was done"

start_collector
expect_exit 4 "$INFERSTAT" restore "$WORK/backup.db" --db "$DB"
stop collector
