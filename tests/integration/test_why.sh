#!/usr/bin/env bash
# `inferstat why` of a collector and of a file: causes in words and as JSON, each with a command that
# works as it is printed, whatever the names of models, hosts and files are.
. "$(dirname "$0")/../support/lib.sh"

# Names that a shell, JSON or a terminal would misread.
# shellcheck disable=SC2016 # they are not expanded
export MODEL=$'it\'s "big" $(touch touched) \\ \033[31m\nmodel' HOST='-gpu 01; `touch touched`'
DB="$WORK/it's a \$store.db"
cd "$WORK" || exit

start_collector --log-level info
stop collector
# Five models on three hosts, each on a device of its own, answer a request every 3 s for 70 minutes.
# In the last ten minutes: the first one's clocks are reduced on one host; answers of `tokens` are
# longer; one host of `host` is slow; `slow` is slow; `usual` is not.  A fourth host is down.
python3 - "$DB" <<'END'
import os, random, sqlite3, sys, time
random.seed(1)
db = sqlite3.connect(sys.argv[1])
now, minute = time.time_ns(), 60 * 10**9
names = {}
def name(text):
    if text not in names:
        names[text] = db.execute("INSERT INTO name(text) VALUES(?) RETURNING id", (text,)).fetchone()[0]
    return names[text]
def insert(table, **values):
    for row in db.execute(f"PRAGMA table_info({table})").fetchall():
        if row[3] and not row[5] and row[4] is None:
            values.setdefault(row[1], 0)
    db.execute("INSERT INTO %s(%s) VALUES(%s)" % (table, ", ".join(f'"{key}"' for key in values),
               ", ".join("?" * len(values))), list(values.values()))
hosts = [os.environ["HOST"], "gpu-2", "gpu-3", "gpu-4"]
models = [os.environ["MODEL"], "tokens", "host", "slow", "usual"]
for run, host in enumerate(hosts, 1):
    insert("run", run=run, uuid=f"{run:08d}-0000-4000-8000-000000000000", host=name(host), owner=1,
           started_ns=now - 70 * minute, received_ns=now - 70 * minute, worker_version="1", os="",
           kernel="", cpu="", end=1 if run < 4 else 2, ended_ns=now - 5 * minute,
           heard_ns=now - (0 if run < 4 else 5 * minute))
number = 0
for which, model in enumerate(models):
    for run in (1, 2, 3):
        for second in range(0, 4200, 3):
            number += 1
            late = second >= 3600
            slow = 2 if late and (model == "slow" or run == 1 and which in (0, 2)) else 1
            tokens = 50 * (2 if late and model == "tokens" else 1)
            queue, prefill = int(random.lognormvariate(16.8, 0.4)), int(3e8 * slow)
            decode = int(tokens * random.lognormvariate(16.6, 0.3) * slow)
            started = now - 70 * minute + second * 10**9
            db.execute("INSERT INTO inference(id, run, stream, number, started_ns, received_ns, model,"
                       " device, request, finish, prompt_tokens, cached_prompt_tokens,"
                       " generated_tokens, queue_ns, prefill_ns, ttft_ns, decode_ns, e2e_ns,"
                       " host_memory_bytes, concurrent_requests) VALUES(?1, ?2, 0, ?1, ?3, ?3, ?4, ?5,"
                       " ?1, 0, 100, 0, ?6, ?7, ?8, ?7 + ?8, ?9, ?7 + ?8 + ?9, 1, 1)",
                       (number, run, started, name(model), name(f"cuda:{which}"), tokens, queue,
                        prefill, decode))
insert("event", run=1, number=1, started_ns=now - 10 * minute, received_ns=now,
       event=name("throttling"), device=name("cuda:0"), duration_ns=10 * minute)
db.commit()
END

# terminal_of OPTION...: on a terminal of 60 columns only commands are longer.
terminal_of() {
  local command
  command -v script >/dev/null || return 0
  printf -v command '%q ' "$INFERSTAT" "$@" why
  script -qec "stty cols 60; $command" /dev/null >"$WORK/out" </dev/null
  expect_text "$WORK/out" "is slower than usual on 1 of 3 hosts."
  ! tr -d '\r' <"$WORK/out" | grep -v '^ *inferstat ' | grep '.\{61\}' || fail "a long line"
}

# causes_of OPTION...: asks in words and as JSON, and runs each command of both, which are the same.
causes_of() {
  expect_exit 0 "$INFERSTAT" "$@" why --host "$HOST"
  expect_exit 0 "$INFERSTAT" "$@" why
  ! grep -q $'\033' "$WORK/out" || fail "an escape reaches the terminal"
  sed -n 's/^    inferstat /inferstat /p' "$WORK/out" >"$WORK/commands"
  expect_exit 0 "$INFERSTAT" "$@" why --json
  cp "$WORK/out" "$WORK/json"
  python3 - "$WORK/json" "$WORK/commands" <<'END'
import json, os, sys
rows = json.load(open(sys.argv[1]))["rows"]
evidence = [row["evidence"] for row in rows]
assert sorted(evidence) == sorted(open(sys.argv[2]).read().splitlines()), rows  # some are nearly as slow
found = {(row["model"], row["cause"]) for row in rows}
host = os.environ["HOST"]
assert rows[0]["cause"] == "down" and rows[0]["host"] == "gpu-4", rows[0]
for cause in (os.environ["MODEL"], "throttling"), ("tokens", "tokens"), ("host", "host"), \
        ("slow", "unexplained"), ("usual", "as_usual"):
    assert cause in found, (cause, found)
assert all(row["host"] == host for row in rows if row["cause"] in ("throttling", "host")), rows
END
  terminal_of "$@"
  while IFS= read -r command; do
    PATH=$(dirname "$INFERSTAT"):$PATH expect_exit 0 bash -c "$command"
    [ -s "$WORK/out" ] || fail "nothing is shown by: $command"
  done <"$WORK/commands"
  [ ! -e touched ] || fail "a name was run"
}

causes_of --db "$DB"
start_collector --log-level info
causes_of --collector "$COLLECTOR"
expect_text "$WORK/commands" "--collector $COLLECTOR"
expect_text "$WORK/commands" "--since 10m"
! grep -q "read from a file" "$WORK/json" || fail "a collector's present is that of a file"
INFERSTAT_COLLECTOR=$COLLECTOR expect_exit 0 "$INFERSTAT" query 'why since 10m'
