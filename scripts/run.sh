#!/usr/bin/env bash
# Demonstrates inferstat: builds it, starts a private collector and a worker
# that answers requests with a model, and opens the dashboard.
#
#   scripts/run.sh [--model FILE.gguf] [--seconds N]
#
#   --model FILE   the model to serve; without it a synthetic one is made (random
#                  weights: its text means nothing, its numbers are real)
#   --seconds N    ends by itself after N seconds; without a terminal it always
#                  does (default 15), and prints the summary instead
#
# INFERSTAT_BIN names a folder with the programs; without it they are built.
#
# It asks twice a second where the model keeps up; a slower one answers one
# request after the other, so none waits in a queue of this script's making.
#
# When it ends, by `q`, Ctrl-C, a closed terminal or an error, everything it
# started has ended.  What was recorded is kept, and it says where: in build/
# for the programs built here, else in $XDG_STATE_HOME/inferstat (by default
# ~/.local/state/inferstat).  The newest ten are kept.
set -euo pipefail

# shellcheck source=scripts/programs.sh
. "$(dirname "$0")/programs.sh"

model=
seconds=
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h)
    show_help
    exit 0
    ;;
  --model=* | --seconds=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
  --model)
    [ -n "${2-}" ] || usage_error "--model needs a file"
    if ! [ -f "$2" ] || ! [ -r "$2" ]; then
      usage_error "$2: no model file that can be read"
    fi
    model=$(realpath -- "$2")
    shift 2
    ;;
  --seconds)
    [[ ${2-} =~ ^[1-9][0-9]{0,6}$ ]] || usage_error "--seconds needs a whole number above 0"
    seconds=$2
    shift 2
    ;;
  *) usage_error "unknown option: $1" ;;
  esac
done
terminal=no
! on_terminal || terminal=yes

began_in=$PWD
find_programs inferstat inferstatd inferstat-worker
kept=$PWD/build/run
if [ -n "${INFERSTAT_BIN-}" ]; then
  kept=${XDG_STATE_HOME:-${HOME:?is not set}/.local/state}/inferstat
fi
mkdir -p "$kept"

# Removes stores of earlier runs but for the newest nine, and none that is in use: its
# name ends in the process id of the run.sh that writes it.
forget_old_stores() {
  local store pid
  find "$kept" -maxdepth 1 -name '20??????-??????-*.db' -printf '%f\n' | sort -r | tail -n +10 |
    while read -r store; do
      pid=${store##*-}
      kill -0 "${pid%.db}" 2>/dev/null && continue
      rm -f "$kept/$store" "$kept/$store-wal" "$kept/$store-shm" "$kept/$store.lock"
    done
}
forget_old_stores

worker_pid=
collector_pid=
asker_pid=
make_work
store=$kept/$(date +%Y%m%d-%H%M%S)-$$.db

# Writes a prompt twice a second; ends with its reader.
ask() {
  while printf 'Once upon a time\n'; do
    sleep 0.5
  done 2>/dev/null
}

leave() {
  local code=$?
  trap '' INT TERM HUP
  set +e
  end "$worker_pid" # the worker first: its goodbye needs a collector
  end "$asker_pid"
  end "$collector_pid"
  rm -rf "$work"
  "$bin/inferstat" --db "$store" inferences >/dev/null 2>&1
  if [ $? -eq 3 ]; then # no data: a model that could not be loaded
    rm -f "$store"*
  elif [ -s "$store" ]; then
    say "what was recorded is kept in $store; to look at it again:"
    say "  $(printf '%q --db %q summary' "${bin#"$began_in"/}/inferstat" "${store#"$began_in"/}")"
  fi
  exit "$code"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

check_alive() {
  kill -0 "$collector_pid" 2>/dev/null || give_up inferstatd "$work/collector.log" "$collector_pid"
  kill -0 "$worker_pid" 2>/dev/null || give_up inferstat-worker "$work/worker.log" "$worker_pid"
}

if [ -z "$model" ]; then
  model=$kept/synthetic-15m-f16.gguf
  if [ ! -f "$model" ]; then
    say "making a synthetic model"
    "$bin/inferstat-worker" make-model --shape 15m --type f16 "$model.$$" >/dev/null
    mv "$model.$$" "$model"
  fi
fi

start_collector "$store"

mkfifo "$work/prompts"
exec {both_ends}<>"$work/prompts" # so that opening either end does not block
exec {questions}>"$work/prompts"
start "$work/worker.log" "$bin/inferstat-worker" llm --model "$model" --tokens 64 --prompt-file - \
  <"$work/prompts" {both_ends}>&- {questions}>&-
worker_pid=$!
ask >&"$questions" </dev/null {both_ends}>&- {questions}>&- &
asker_pid=$!
exec {both_ends}>&- {questions}>&-

if [ "$terminal" = yes ]; then
  sleep 0.3 # a model that cannot be loaded says so before the dashboard covers it
  check_alive
  code=0
  if [ -n "$seconds" ]; then
    timeout --foreground "$seconds" "$bin/inferstat" top || code=$?
    [ "$code" -ne 124 ] || code=0
  else
    "$bin/inferstat" top || code=$?
  fi
  check_alive
  "$bin/inferstat" summary || true
  exit "$code"
fi

seconds=${seconds:-15}
say "no terminal: recording for $seconds seconds"
for ((second = 1; second <= seconds; second++)); do
  sleep 1
  check_alive
  if [ $((second % 5)) -eq 0 ] || [ "$second" -eq "$seconds" ]; then
    printf '%3d/%d s  %s\n' "$second" "$seconds" "$("$bin/inferstat" summary --line 2>&1 || true)"
  fi
done
"$bin/inferstat" inferences >/dev/null || {
  say "nothing was recorded; the worker's last words:"
  tail -n 15 "$work/worker.log" >&2
  exit 3
}
"$bin/inferstat" summary
