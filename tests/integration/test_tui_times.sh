#!/usr/bin/env bash
# shellcheck disable=SC2119 # a collector without options
# When the dashboard shows what happens: a record after a quiet time, requests that fail, an engine
# that dies, a collector that falls silent.  Times are of the wall clock, with room for a machine
# that is busy; what is missed by much is a fault.
. "$(dirname "$0")/../support/lib.sh"
. "$(dirname "$0")/../support/tui.sh"

ENGINE=$INFERSTAT_BUILD/tests/support/fleet_engine
[ -x "$ENGINE" ] || skip "no engine"

now_ms() { date +%s%3N; }

# shown_at TEXT: waits for the text; sets `at` to the time in milliseconds when it was there.
shown_at() {
  local tries=600
  until screen | grep -qE -- "$1"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { screen >&2; fail "the screen never showed: $1"; }
    sleep 0.02
  done
  at=$(now_ms)
}

# within WHAT SINCE_MS LIMIT_MS
within() {
  local took=$((at - $2))
  printf '%s: %s ms (at most %s)\n' "$1" "$took" "$3"
  [ "$took" -le "$3" ] || fail "$1 took $took ms, more than $3"
}

# engine NAME ARGUMENTS...: of a host with that name.
engine() {
  local name=$1
  shift
  mkdir -m 0700 "$WORK/run/$name"
  start "$name" env INFERSTAT_HOST="$name" INFERSTAT_COLLECTOR="$COLLECTOR" \
    INFERSTAT_RUN_DIR="$WORK/run/$name" INFERSTAT_SPOOL="$WORK/spool-$name" "$ENGINE" "$@"
}

# The time in milliseconds when the newest request that fits ended.
ended_at() {
  sqlite3 -readonly "$DB" "SELECT max(started_ns + e2e_ns) / 1000000 FROM inference WHERE $1"
}

SLACK=${INFERSTAT_TEST_SLACK_MS-750} # of a busy machine, and of looking at the screen

start_collector
open_terminal 120 30 "$INFERSTAT" top --collector "$COLLECTOR"
shows "No records in"

# A record after a quiet time: the one request of an engine that takes 10 s for the next.
engine quiet --model first --devices 1 --tokens 10 --token-ms 1000
press 3
shows "no request"
shown_at "first .*quiet"
within "a record" "$(ended_at "1")" $((250 + SLACK))
stop quiet
press 1
shows "1 ended"

# Requests that fail from a moment on: the state and the banner, within 2 s of the third failure.
engine failing --model second --devices 1 --tokens 4 --token-ms 25 --fail 0:4:60
shows "● ok"
shown_at "second failing +✗ errors"
shows "✗ second failing errors" 1
third=$(sqlite3 -readonly "$DB" \
  "SELECT (started_ns + e2e_ns) / 1000000 FROM inference WHERE finish = 3 ORDER BY started_ns LIMIT 1 OFFSET 2")
within "failures" "$third" $((2000 + SLACK))

# An engine that dies.
engine dying --model third --devices 1 --tokens 4 --token-ms 25
shown_at "third +dying +● ok|third dying +● ok"
killed=$(now_ms)
stop dying KILL
shown_at "✗ third dying down"
within "a death" "$killed" $((5000 + SLACK))

# A collector that answers no more: its data's age, a second after the answer was due.
since=$(now_ms)
kill -STOP "${started_pids[collector]}"
shown_at "[0-9]s old|✗ no answer"
kill -CONT "${started_pids[collector]}"
within "a silence" "$since" $((2000 + 1000 + SLACK))
shows "● live"
press q
ended 0
