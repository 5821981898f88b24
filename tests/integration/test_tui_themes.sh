#!/usr/bin/env bash
# shellcheck disable=SC2119 # a collector without options
# Each theme on each kind of terminal: good, warning and bad have a sign and a look of their own, and
# colours that are known are readable on the backgrounds that the theme is for.
. "$(dirname "$0")/../support/lib.sh"
. "$(dirname "$0")/../support/tui.sh"

start_collector
stop collector
sqlite3 -bail "$DB" <"$(dirname "$0")/../support/tui_store.sql"
export XDG_CONFIG_HOME=$WORK/config
mkdir -p "$XDG_CONFIG_HOME/inferstat"
# Terminals that not every machine describes, in the user's own folder of them.
tic -x -o "$HOME/.terminfo" - <<'END'
xterm-16color|16 colours, colors#16, pairs#256,
  setaf=\E[%?%p1%{8}%<%t%p1%{30}%+%e%p1%{82}%+%;%dm,
  setab=\E[%?%p1%{8}%<%t%p1%{40}%+%e%p1%{92}%+%;%dm, use=xterm-256color,
xterm-direct|direct colours but for the first 8, RGB, CO#8, colors#0x1000000, pairs#0x7FFF,
  setaf=\E[%?%p1%{8}%<%t3%p1%d%e38\:2\:\:%p1%{65536}%/%d\:%p1%{256}%/%{255}%&%d\:%p1%{255}%&%d%;m,
  setab=\E[%?%p1%{8}%<%t4%p1%d%e48\:2\:\:%p1%{65536}%/%d\:%p1%{256}%/%{255}%&%d\:%p1%{255}%&%d%;m,
  use=xterm-256color,
END

# draw THEME COMMAND...: what the dashboard draws with that theme: good and bad, then a warning.
draw() {
  echo "theme = $1" >"$XDG_CONFIG_HOME/inferstat/top.conf"
  open_terminal 80 24 env NCURSES_GPM_TERMS="" "${@:2}" top --db store.db
  press 3
  shows "Newest requests"
  terminal capture-pane -p -e >"$WORK/drawn"
  press Space
  shows "paused"
  terminal capture-pane -p -e >>"$WORK/drawn"
  press q
  shows "ended 0"
}
# judge KIND [BACKGROUND...]
judge() {
  python3 "$INFERSTAT_SOURCE/tests/support/judge_looks.py" "$@" <"$WORK/drawn" || fail "$kind, theme $theme"
}

for theme in default light colour-blind; do
  backgrounds=(white black)
  [ $theme != light ] || backgrounds=(white)
  for kind in linux xterm-16color xterm-256color xterm-direct; do
    draw $theme TERM=$kind "$INFERSTAT"
    judge $theme "${backgrounds[@]}"
  done
done
for kind in vt100 NO_COLOR mono; do
  theme=default
  case $kind in
  vt100) draw $theme TERM=vt100 "$INFERSTAT" ;;
  NO_COLOR) draw $theme NO_COLOR=1 "$INFERSTAT" ;;
  mono) theme=mono && draw $theme "$INFERSTAT" ;;
  esac
  judge mono
done
