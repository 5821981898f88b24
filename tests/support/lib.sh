# shellcheck shell=bash
# For tests that drive the real programs.  A test sources this file, gets a
# private folder in $WORK, and leaves nothing behind: every program it starts
# through `start` is ended by its pid, and $WORK is removed, however it ends.
#
#   . "$(dirname "$0")/../support/lib.sh"
#   start_collector
#   start worker "$WORKER" --collector "$COLLECTOR" llm ...
#   wait_until 10 has_rows inference 3
#   expect_exit 0 "$INFERSTAT" --db "$DB" summary
#   stop worker
#   stop collector
#
# A program that ends otherwise than the test expects, or that writes a sanitizer's
# report, fails the test.
#
# The build hands over where the programs are: INFERSTATD, WORKER, INFERSTAT.
set -euo pipefail

INFERSTATD=${INFERSTATD-inferstatd}
WORKER=${WORKER-inferstat-worker}
INFERSTAT=${INFERSTAT-inferstat}
export INFERSTATD WORKER INFERSTAT

# Socket paths end at 107 bytes, so a long TMPDIR is of no use.
WORK=${TMPDIR:-/tmp}
[ ${#WORK} -le 60 ] || WORK=/tmp
WORK=$(mktemp -d "$WORK/inferstat-test.XXXXXX")
COLLECTOR=ipc://$WORK/c
DB=$WORK/store.db
mkdir -m 0750 "$WORK/c"
mkdir -m 0700 "$WORK/run"
# Nothing of the user's own set-up reaches a test.
unset INFERSTAT_COLLECTOR INFERSTAT_HOST NO_COLOR XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME
export XDG_RUNTIME_DIR=$WORK/run INFERSTAT_RUN_DIR=$WORK/run INFERSTAT_SPOOL=$WORK/spool
export HOME=$WORK LC_ALL=C.UTF-8
export SHELL=/bin/bash # tmux runs what it is given in it
export WORK COLLECTOR DB

declare -A started_pids=() # name -> pid of what runs in the background
exec {test_stderr}>&2      # where `fail` speaks, also inside a silenced command

# Says what is wrong, with the last lines of every log.
complain() {
  local log
  {
    printf 'FAILED: %s\n' "$*"
    for log in "$WORK"/*.log; do
      [ -s "$log" ] || continue
      printf -- '--- %s\n' "${log##*/}"
      tail -n 20 "$log"
    done
  } >&"$test_stderr"
}

# Ends the test as failed.
fail() {
  complain "$@"
  exit 1
}

# Ends the test as not run.
skip() {
  printf 'SKIPPED: %s\n' "$*"
  exit 77
}

# start NAME COMMAND...: runs it in the background, its output in $WORK/NAME.log.
# A shell makes its background jobs ignore SIGINT, and our programs leave it so.
start() {
  local name=$1
  shift
  env --default-signal=INT "$@" >>"$WORK/$name.log" 2>&1 </dev/null {test_stderr}>&- &
  started_pids[$name]=$!
  # A signal to the copy of this shell that is yet to become the program is lost.
  while cmp -s "/proc/$!/cmdline" "/proc/$$/cmdline"; do :; done
}

# Whether the program started under that name still runs.
running() {
  local pid=${started_pids[$1]-}
  [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}

# wait_until SECONDS COMMAND...: tries until it succeeds; fails the test otherwise.
wait_until() {
  local tries=$(($1 * 20))
  shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "waited in vain for: $*"
    sleep 0.05
  done
}

# stop NAME [SIGNAL [CODE]]: ends it and waits.  Fails the test when it takes over
# 20 seconds or ends with another code: 0, or 137 where it is killed.
stop() {
  local name=$1 signal=${2-TERM} pid=${started_pids[$1]-} code=0
  [ -n "$pid" ] || fail "stop: $name was never started"
  [ "$signal" != KILL ] || code=137
  kill "-$signal" "$pid" 2>/dev/null || true
  wait_ended "$name" 20 "${3-$code}"
}

# wait_ended NAME SECONDS [CODE]: waits for it to end by itself, with that code (0);
# it is in $stopped_code.
wait_ended() {
  local name=$1 pid=${started_pids[$1]} tries=$(($2 * 20))
  while kill -0 "$pid" 2>/dev/null; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "$name did not end"
    sleep 0.05
  done
  stopped_code=0
  wait "$pid" 2>/dev/null || stopped_code=$?
  unset "started_pids[$name]"
  [ "$stopped_code" -eq "${3-0}" ] || fail "$name ended with $stopped_code, not ${3-0}"
}

# Whether no program wrote a sanitizer's report; shows it otherwise.
no_report() {
  local file
  for file in "$WORK"/*.log "$WORK/err"; do
    if [ -f "$file" ] && grep -qE 'Sanitizer|runtime error:' "$file"; then
      cat "$file" >&"$test_stderr"
      complain "a sanitizer's report in ${file##*/}"
      return 1
    fi
  done
}

# expect_exit CODE COMMAND...: runs it; its output is left in $WORK/out and $WORK/err.
expect_exit() {
  local want=$1 got=0
  shift
  "$@" >"$WORK/out" 2>"$WORK/err" </dev/null || got=$?
  if [ "$got" -ne "$want" ]; then
    cat "$WORK/out" "$WORK/err" >&2
    fail "exit code $got, not $want: $*"
  fi
  no_report || exit 1
}

# expect_text FILE TEXT: the file holds that text somewhere.
expect_text() {
  grep -qF -- "$2" "$1" || {
    cat "$1" >&2
    fail "no \"$2\" in ${1##*/}"
  }
}

collector_ready() {
  running collector || fail "the collector ended early"
  [ -S "$WORK/c/ingest" ] && [ -S "$WORK/c/query" ] && [ -S "$WORK/c/live" ]
}

# start_collector [OPTION]...: a collector on $COLLECTOR with the store $DB, ready.
start_collector() {
  start collector "$INFERSTATD" --listen "$COLLECTOR" --db "$DB" "$@"
  wait_until 20 collector_ready
}

# has_rows TABLE COUNT: whether the store's table has at least so many rows.
has_rows() {
  local rows
  rows=$(sqlite3 -readonly "$DB" "select count(*) from $1") && [ "$rows" -ge "$2" ]
}

# Ends what a test left running; fails when it does not end well.  Only a program
# still short of its handlers may end by the signal itself.
end_started() {
  local name pid tries=400 code wrong=0
  for name in "${!started_pids[@]}"; do
    pid=${started_pids[$name]}
    kill "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null && [ "$tries" -gt 0 ]; do
      tries=$((tries - 1))
      sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null || true
    code=0
    wait "$pid" 2>/dev/null || code=$?
    if [ "$code" -ne 0 ] && [ "$code" -ne 143 ]; then
      complain "$name, left running, ended with $code"
      wrong=1
    fi
  done
  return "$wrong"
}

# A test that has more to undo defines at_leave.  One that failed kills what is left.
leave() {
  local code=$? pid
  trap - EXIT
  ! declare -F at_leave >/dev/null || at_leave || true
  if [ "$code" -eq 0 ]; then
    end_started || code=1
    no_report || code=1
  fi
  for pid in "${started_pids[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$WORK"
  exit "$code"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
