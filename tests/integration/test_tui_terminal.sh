#!/usr/bin/env bash
# shellcheck disable=SC2119 # a collector without options
# The dashboard and its terminal: sizes that change all the time, suspending, kinds of terminals,
# settings that are kept, and every way to end.
. "$(dirname "$0")/../support/lib.sh"
. "$(dirname "$0")/../support/tui.sh"

start_collector
stop collector
sqlite3 -bail "$DB" <"$(dirname "$0")/../support/tui_store.sql"

# A storm of sizes, the smallest and the largest among them, ends with a whole screen.
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "synthet"
for _ in 1 2 3 4 5; do
  for size in "40 10" "400 120" "60 16" "59 15" "200 60" "1 1" "120 40"; do
    # shellcheck disable=SC2086 # two words
    resize $size
  done
done
resize 400 120
shows "synthet"
screen | sed -n 1p | grep -qF "8 Ledger" || fail "the title is not whole at 400x120"
resize 80 24
golden real-80x24
press q
ended 0

# Suspended, the shell has its terminal; resumed, the screen is as it was.
open_terminal 80 24 bash --norc -i
press -l "$(printf 'PS1="ready> "; %q top --db store.db' "$INFERSTAT")"
press Enter
shows "synthet"
press C-z
shows "Stopped"
[ "$(terminal display-message -p '#{alternate_on} #{mouse_any_flag}')" = "0 0" ] ||
  fail "the terminal is not given back while it is suspended"
resize 120 40
press -l "fg"
press Enter
shows "synthet"
golden real-120x40
press q
shows_not "synthet"
[ "$(terminal display-message -p '#{alternate_on} #{mouse_any_flag}')" = "0 0" ] ||
  fail "the terminal is not as it was"
terminal kill-server

# A client detaches and comes back at another size; meanwhile the dashboard goes on.
# shellcheck disable=SC2154 # of tui.sh
outer() {
  tmux -S "$WORK/outer" -f /dev/null "$@"
}
attach() { # COLUMNS ROWS: a client of that size, which is a tmux of its own
  outer new-session -d -x "$1" -y "$2" env -u TMUX TERM=tmux-256color \
    tmux -S "$WORK/tmux.$terminals" attach
}
is_shown() { outer capture-pane -p | grep -qF "$1"; }
open_terminal 80 24 "$INFERSTAT" top --db store.db
terminal set-option -g status off
terminal set-option -g window-size latest
shows "synthet"
for size in "120 40" "60 16" "80 24"; do
  # shellcheck disable=SC2086 # two words
  attach $size
  wait_until 10 is_shown "Models"
  golden "real-${size/ /x}"
  terminal detach-client -s 0
  wait_until 10 eval '! outer list-sessions'
  press 8
  shows "Runs and losses"
  press 1
  shows "Models"
done
press q
ended 0

# Home and End of other terminals, and sequences of keys that nobody knows: no key of them counts.
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "Models"
press -l $'\e[25~\e[I\e[9;5u\eOz'
press 8
shows "Runs and losses"
press -l $'\e[1~\e[4~\e[H\eOF'
press 8
shows "Runs and losses"
screen | grep -qF "of all time" || fail "a key's sequence moved the window"
press q
ended 0

# Kinds of terminals: without colours, with 8, 16, 256 and direct ones.  Without the console's mouse,
# for which curses loads a library that leaks.
for kind in vt100 linux xterm-16color xterm-256color xterm-direct screen tmux-256color; do
  infocmp "$kind" >/dev/null 2>&1 || continue
  open_terminal 80 24 env TERM="$kind" NCURSES_GPM_TERMS="" "$INFERSTAT" top --db store.db
  shows "synthet"
  press 8
  shows "Runs and losses"
  press q
  shows "ended 0"
done

# Settings are kept, and used at the next start; a file that is wrong is told and left alone.
settings=$WORK/config/inferstat/top.conf
export XDG_CONFIG_HOME=$WORK/config
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "synthet"
press F2
shows "< default >"
press Left Down Down Down Right
shows "< mono >"
shows "< 5s >"
press Escape
shows "saved"
shows "every 5.0s"
press q
ended 0
grep -qx "theme = mono" "$settings" || fail "the theme is not in the file"
grep -qx "refresh = 5s" "$settings" || fail "the interval is not in the file"
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "every 5.0s"
! terminal capture-pane -p -e | grep -qE $'\e\\[[0-9;]*(3[0-8]|9[0-7])[0-9;]*m' ||
  fail "colours in spite of theme = mono"
for look in 1 2 7; do # bold, dim, reversed
  terminal capture-pane -p -e | grep -qE $'\e\\[([0-9;]*;)?'"$look"'[;m]' || fail "mono lacks $look"
done
press q
ended 0
open_terminal 80 24 "$INFERSTAT" top --db store.db --interval 1s # goes before the file
shows "every 1.0s"
press q
ended 0
printf 'theme = purple\n# mine\nnew_thing = 1\n' >"$settings"
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows 'no such value: "purple"'
press F2 Down Right Escape
shows "saved"
press q
ended 0
[ "$(cat "$settings")" = $'theme = purple\n# mine\nnew_thing = 1\ntemperature = fahrenheit' ] ||
  fail "other lines of the file were changed"
unset XDG_CONFIG_HOME

# Any text filters rows.
open_terminal 120 24 "$INFERSTAT" top --db store.db
press 3
shows "gpu-17"
press "\\"
press -l gpu-18
press Enter
shows "gpu-18"
shows_not "gpu-17"
press "\\" Up
shows "gpu-18"
press Escape q
ended 0

# An export asks once before it replaces a file.
printf 'mine\n' >"$WORK/a.txt"
open_terminal 80 24 "$INFERSTAT" top --db store.db
shows "synthet"
for _ in first again; do
  press e C-u
  press -l a.txt
  press Enter
  if [ "$(cat "$WORK/a.txt")" = mine ]; then
    shows "the file exists: Enter replaces it"
    press Enter
  fi
  shows "written: a.txt"
done
grep -q synthet "$WORK/a.txt" || fail "the screen was not exported"
press q
ended 0

# Ends: signals that ask for it, and a terminal that goes away.
for signal in INT HUP TERM QUIT; do
  open_terminal 80 24 bash -c "echo \$\$ >$WORK/pid; exec \"$INFERSTAT\" top --db store.db"
  shows "synthet"
  kill "-$signal" "$(cat "$WORK/pid")"
  ended 0
done
open_terminal 80 24 bash -c "echo \$\$ >$WORK/pid; exec \"$INFERSTAT\" top --db store.db"
shows "synthet"
pid=$(cat "$WORK/pid")
terminal kill-server
gone() { ! kill -0 "$pid" 2>/dev/null; }
wait_until 10 gone
