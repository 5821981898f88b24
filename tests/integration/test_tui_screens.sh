#!/usr/bin/env bash
# shellcheck disable=SC2119 # a collector without options
# The dashboard over a store file of known content, compared with text at several
# sizes, while it is resized, and by keys.
. "$(dirname "$0")/../support/lib.sh"
. "$(dirname "$0")/../support/tui.sh"

start_collector
stop collector
sqlite3 -bail "$DB" <"$(dirname "$0")/../support/tui_store.sql"

open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "synthet"
golden real-80x24
resize 120 40
golden real-120x40
resize 200 50
golden real-200x50
resize 60 16
golden real-60x16
resize 40 10
golden real-40x10
resize 80 24
golden real-80x24

# Of the last minutes, and of the last hour, of that day.
press t t
shows "window 5m"
shows "req/s 0.16 · tok/s"
press t
shows "window 1h"
shows "req/s 0.16 · tok/s 5.77"
press t t t t
golden real-80x24

press 3
shows "1-11 of 48"
press PageDown PageDown
shows "11-21 of 48"
press End
shows "38-48 of 48"
press Escape
golden real-requests-80x24
press Down Enter
golden real-detail-80x24
press Escape Escape 4
golden real-loads-80x24
press 8
golden real-ledger-80x24
press 1
golden real-80x24
press '?'
golden real-help-80x24
press Escape
shows "Models"

# The pipeline runs, their rows sorted and narrowed; help leads there and back.
press 5
golden real-pipelines-80x24
resize 200 50
golden real-pipelines-200x50
resize 60 16
golden real-pipelines-60x16
resize 80 24
press '?'
shows "a longer window"
press 5
golden real-pipelines-80x24
press '>' '>' '>' '>' '>' '>'
shows "items/s▼"
[ "$(screen | sed -n 10p | cut -c11-16)" = encode ] || fail "not sorted by items a second"
press I
shows "items/s▲"
[ "$(screen | sed -n 10p | cut -c11-16)" = model_ ] || fail "not sorted the other way round"
press "\\"
shows "Show only"
press -l 'host=gpu-18'
press Enter
shows "nothing that the filter covers"
press F4
press C-u Enter
shows "model_"
press 1
shows "Models"
golden real-80x24

# Sorted by speed, the fastest first; then the slowest.
press '>' '>' '>' '>'
shows "tok/s▼"
[ "$(screen | sed -n 10p | cut -c2-5)" = synt ] || fail "not sorted by speed"
press I
shows "tok/s▲"
[ "$(screen | sed -n 10p | cut -c2-5)" = tiny ] || fail "not sorted the other way round"

press '}'
shows "every 5.0s"
press '{' '{'
shows "every 1.0s"
press Space
shows "paused"
press Space
shows "● file"
press q
ended 0

# ASCII, by option and by locale; nothing else is on the screen then.
open_terminal 80 24 "$INFERSTAT" top --db store.db --ascii
shows "synthet"
golden real-ascii-80x24
press F10
ended 0
open_terminal 80 24 env LC_ALL=C "$INFERSTAT" top --db store.db
shows "synthet"
golden real-ascii-80x24
press q
ended 0

# A locale of UTF-8 that is not installed here, as after ssh, is still one.
open_terminal 80 24 env LC_ALL=xx_YY.UTF-8 "$INFERSTAT" top --db store.db
shows "synthet"
golden real-80x24
press q
ended 0

# Colours where the terminal has them, none where the user wants none.
coloured() {
  terminal capture-pane -p -e | grep -qE $'\e\\[[0-9;]*(3[0-8]|9[0-7])[0-9;]*m'
}
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "synthet"
coloured || fail "no colours"
press q
ended 0
for command in "env NO_COLOR=1 $INFERSTAT top" "$INFERSTAT top --no-color"; do
  # shellcheck disable=SC2086 # words
  open_terminal 80 24 $command --db store.db
  shows "synthet"
  ! coloured || fail "colours in spite of: $command"
  press q
  ended 0
done

# The mouse: a press on a heading sorts, the wheel scrolls the panel under it.
# mouse BUTTON COLUMN ROW, as a terminal reports it.
mouse() {
  local report
  # The octal escapes are the report's bytes.
  # shellcheck disable=SC2059
  printf -v report "\\x$(printf %x $((32 + $1)))\\x$(printf %x $((32 + $2)))\\x$(printf %x $((32 + $3)))"
  press -l $'\e[M'"$report"
}
click() {
  mouse 0 "$1" "$2"
  mouse 3 "$1" "$2" # let go
}
mouse_is_taken() {
  [ "$(terminal display-message -p '#{mouse_any_flag}')" = 1 ]
}
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "synthet"
mouse_is_taken || fail "the mouse is not asked for"
click 2 9
shows "host▲"
click 2 9
shows "host▼"
press 3
shows "1-11 of 48"
mouse 65 40 18
shows "4-14 of 48"
mouse 64 40 18
shows "1-11 of 48"
click 3 12
click 3 12
shows "Detail"
press q
ended 0
open_terminal 80 24 "$INFERSTAT" top --db store.db --no-mouse
shows "synthet"
! mouse_is_taken || fail "the mouse is taken in spite of --no-mouse"
press q
ended 0

# What the user types that the dashboard does not know changes nothing.
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "synthet"
press x 'ü' '千' F5 F9 Left Right 0
golden real-80x24
press C-l
golden real-80x24
press C-c
ended 0

# No terminal, an unknown one, no file.
expect_exit 2 "$INFERSTAT" top --db "$DB"
expect_text "$WORK/err" "needs a terminal"
for name in nonsense dumb; do
  open_terminal 80 24 env TERM=$name "$INFERSTAT" top --db store.db
  shows "ended 2"
  screen | grep -qF "cannot draw on a terminal \"$name\"" || fail "no word about the terminal"
done
open_terminal 80 24 "$INFERSTAT" top --db nowhere.db
shows "ended 4"
