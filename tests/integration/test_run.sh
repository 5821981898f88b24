#!/usr/bin/env bash
# scripts/run.sh: what it shows without a terminal and in one, and that nothing
# it started outlives it, however it ends.
. "$(dirname "$0")/../support/lib.sh"

bin=$(dirname "$INFERSTATD")
kept="$WORK/kept here/inferstat"
export INFERSTAT_BIN=$bin TMPDIR=$WORK/t XDG_STATE_HOME="$WORK/kept here"
mkdir -p "$TMPDIR" "$kept"
run=$INFERSTAT_SOURCE/scripts/run.sh

# Everything that run.sh starts names a folder under $TMPDIR.
survivors() {
  local file
  for file in /proc/[0-9]*/cmdline; do
    if tr '\0' ' ' 2>/dev/null <"$file" | grep -qF "$TMPDIR/inferstat."; then
      tr '\0' ' ' 2>/dev/null <"$file" || true
      echo
    fi
  done
}
expect_nothing_left() {
  local left
  left=$(survivors)
  [ -z "$left" ] || fail "$1: still running: $left"
  [ -z "$(ls -A "$TMPDIR")" ] || fail "$1: left in TMPDIR: $(ls -A "$TMPDIR")"
}

# The store it says it kept, from what it wrote to the file given; removes it.
expect_kept_rows() {
  local store rows
  store=$(sed -n 's/^run.sh: what was recorded is kept in \(.*\); to look.*/\1/p' "$1" | tr -d '\r')
  [ -f "$store" ] || fail "no store kept: $(cat "$1")"
  rows=$(sqlite3 -readonly "$store" "select count(*) from inference")
  rm -f "$store" "$store"-wal "$store"-shm "$store".lock
  [ "$rows" -ge "$2" ] || fail "only $rows inferences in the store"
}

expect_exit 2 "$run" --seconds none
expect_exit 2 "$run" --model "$WORK/absent.gguf"

# A model that cannot be loaded leaves no store behind.
printf 'no model' >"$WORK/wrong.gguf"
expect_exit 1 "$run" --model "$WORK/wrong.gguf" --seconds 2
expect_text "$WORK/err" "not a GGUF file"
[ -z "$(ls -A "$kept")" ] || fail "kept: $(ls "$kept")"

# Stores of runs long ago, of one that still runs, and a file that is none of ours.
touch "$kept"/20200101-0000{10..21}-999999999.db "$kept/20190101-000000-$$.db" "$kept/mine.db" \
  "$kept/20200101-000010-999999999.db-wal"

# Without a terminal: records, prints the summary.  A small model, so that no
# build is too slow to answer once.
model=$WORK/tiny.gguf
expect_exit 0 "$WORKER" make-model --shape tiny "$model"
expect_exit 0 "$run" --model "$model" --seconds 4
expect_nothing_left "after its time"
expect_text "$WORK/out" "4/4 s"
expect_text "$WORK/out" "tiny"
cp "$WORK/err" "$WORK/said"
bash -c "$(sed -n 's/^run.sh:   //p' "$WORK/said")" >"$WORK/out" || fail "the command it gives fails"
expect_text "$WORK/out" "tiny"
[ "$(find "$kept" -name '2020*.db*' | wc -l)" -eq 9 ] || fail "not the newest nine kept: $(ls "$kept")"
for name in mine.db 20190101-000000-$$.db; do
  [ -f "$kept/$name" ] || fail "$name was not to go"
done
rm "$kept"/20[12][09]0101* "$kept/mine.db"
expect_kept_rows "$WORK/said" 1
[ -z "$(find "$bin/.." -newer "$model" -name '*.db')" ] || fail "a store beside the programs"

# A model that is none: the worker's own words, and an error.
printf 'no model' >"$WORK/wrong.gguf"
expect_exit 1 "$run" --model "$WORK/wrong.gguf" --seconds 5
expect_text "$WORK/err" "inferstat-worker ended early"
expect_text "$WORK/err" "wrong.gguf"
expect_nothing_left "after a wrong model"

# The worker is killed: what it wrote as an answer is none of its last words.
start killed "$run" --model "$model" --seconds 60
wait_until 30 grep -q "^run.sh: no terminal" "$WORK/killed.log"
sleep 2
read -ra children <"/proc/${started_pids[killed]}/task/${started_pids[killed]}/children" || true # no newline at its end
for child in "${children[@]}"; do
  ! grep -qF inferstat-worker "/proc/$child/cmdline" || kill -KILL "$child"
done
wait_ended killed 20 1
! grep -q "Killed\|Once upon a time" "$WORK/killed.log" || fail "more than its last words: $(cat "$WORK/killed.log")"
expect_text "$WORK/killed.log" "run.sh: inferstat-worker was killed (signal 9)"
expect_nothing_left "after a killed worker"

# Asked to end in the middle.
start run "$run" --model "$model" --seconds 60
wait_until 30 grep -q "^run.sh: no terminal" "$WORK/run.log"
sleep 2
stop run TERM 143
expect_nothing_left "after TERM"
expect_kept_rows "$WORK/run.log" 1

# In a terminal, with the model it makes itself: q, Ctrl-C, the terminal closed.
in_tmux() {
  tmux -L "inferstat-$$" -f /dev/null "$@"
}
on_screen() {
  in_tmux capture-pane -p -t demo | grep -qF "$1"
}
at_leave() {
  in_tmux kill-server 2>/dev/null
}
tmux_gone() {
  ! in_tmux has-session -t demo 2>/dev/null
}
nothing_running() {
  [ -z "$(survivors)" ] && [ -z "$(ls -A "$TMPDIR")" ]
}
for way in q C-c hang-up; do
  in_tmux new-session -d -s demo -x 100 -y 30 "'$run' 2>'$WORK/terminal.log'; echo \$? >'$WORK/code'"
  wait_until 90 on_screen synthetic
  if [ "$way" = hang-up ]; then
    in_tmux kill-session -t demo
  else
    in_tmux send-keys -t demo "$way"
  fi
  wait_until 20 tmux_gone
  wait_until 20 nothing_running
  expect_kept_rows "$WORK/terminal.log" 0
done
