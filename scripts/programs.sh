# shellcheck shell=bash
# For scripts that run the real programs to show them: finds or builds these, starts them in a
# private folder, and ends them.  Such a script sources this file, calls find_programs and make_work,
# and has a trap that ends what it started.

# give_up says how a program ended; without this, bash does, too.
# shellcheck disable=SC2173
trap : KILL

say() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2 || true
}

usage_error() {
  say "$* (see --help)"
  exit 2
}

# Prints the comment at the head of the script.
show_help() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
}

on_terminal() {
  [ -t 0 ] && [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]
}

# find_programs TARGET...: the folder with the programs in $bin: INFERSTAT_BIN, or, once these
# targets are built, that of the release build.  Leaves the shell in the root of the sources.
find_programs() {
  if [ -n "${INFERSTAT_BIN-}" ]; then
    bin=$(cd "$INFERSTAT_BIN" && pwd) || usage_error "INFERSTAT_BIN: no such folder"
    cd "$(dirname "$0")/.." || exit
    return
  fi
  cd "$(dirname "$0")/.." || exit
  scripts/setup.sh
  say "building inferstat into build/release: some minutes the first time, then seconds"
  INFERSTAT_TARGET="$*" scripts/build.sh release
  bin=$PWD/build/release/bin
}

# Makes the private folder $work, where the sockets lie: their paths may have 107 bytes at most.
make_work() {
  local folder
  work=
  for folder in "${TMPDIR:-/tmp}" /tmp; do
    [ ${#folder} -le 70 ] && work=$(mktemp -d "$folder/inferstat.XXXXXX") && break
  done
  [ -n "$work" ] || {
    say "cannot make a folder for the sockets in ${TMPDIR:-/tmp} or /tmp (free some space, or set TMPDIR)"
    exit 1
  }
  export INFERSTAT_COLLECTOR=ipc://$work INFERSTAT_RUN_DIR=$work INFERSTAT_SPOOL=$work/spool
}

# start LOG COMMAND...: starts a program beyond the reach of the terminal's Ctrl-C and hang-up, so
# that the script can end its programs in order; should the script be killed, they are asked to end.
# LOG has what it says of itself, not what it puts out.
start() {
  local log=$1
  shift
  setsid setpriv --pdeathsig TERM "$@" 2>"$log" >/dev/null <&0 &
}

# end PID...: asks programs to end, waits up to 10 seconds, then kills them.
end() {
  local pid tries=200
  for pid; do
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  done
  for pid; do
    [ -n "$pid" ] || continue
    while kill -0 "$pid" 2>/dev/null; do
      tries=$((tries - 1))
      if [ "$tries" -le 0 ]; then
        kill -KILL "$pid" 2>/dev/null
        break
      fi
      sleep 0.05
    done
    wait "$pid" 2>/dev/null
  done
}

# give_up PROGRAM LOG PID: says how a program ended, with its last words, if it has any.
give_up() {
  local code=0 how
  wait "$3" 2>/dev/null || code=$?
  how="ended early (exit $code)"
  [ "$code" -le 128 ] || how="was killed (signal $((code - 128)))"
  if [ -s "$2" ]; then
    say "$1 $how; its last words:"
    tail -n 15 "$2" | cut -c1-300 >&2 || true
  else
    say "$1 $how"
  fi
  exit 1
}

# start_collector STORE: its process is $collector_pid; returns once it answers.
start_collector() {
  local tries
  start "$work/collector.log" "$bin/inferstatd" --listen "$INFERSTAT_COLLECTOR" --db "$1" </dev/null
  collector_pid=$!
  for ((tries = 200; tries > 0; tries--)); do
    kill -0 "$collector_pid" 2>/dev/null || give_up inferstatd "$work/collector.log" "$collector_pid"
    "$bin/inferstat" ping >/dev/null 2>&1 && return
    sleep 0.05
  done
  give_up inferstatd "$work/collector.log" "$collector_pid"
}
