# shellcheck shell=bash
# Drives the dashboard in tmux.  Sourced after lib.sh by tests that need it.
command -v tmux >/dev/null || skip "tmux is not there"
[ -x "${INFERSTAT-}" ] || skip "the programs were not built"

export TZ=UTC
unset TMUX

# Each terminal is a tmux of its own: one that ends does not meet the next.
terminals=0
terminal() {
  tmux -S "$WORK/tmux.$terminals" -f /dev/null "$@"
}

at_leave() {
  terminal kill-server 2>/dev/null
}

# open_terminal COLUMNS ROWS COMMAND...: a terminal that runs the command and says
# how it ended.
open_terminal() {
  local size=(-x "$1" -y "$2")
  shift 2
  {
    printf 'export TERM=tmux-256color\ncd %q\nstty -a >before\n' "$WORK"
    printf '%q ' "$@"
    # The words are for the inner shell.
    # shellcheck disable=SC2016
    printf '\nprintf "ended %%s\\n" $?\nstty -a >after\nexec sleep 300\n'
  } >"$WORK/inside.sh"
  terminal kill-server 2>/dev/null || true
  terminals=$((terminals + 1))
  rm -f "$WORK/before" "$WORK/after"
  terminal new-session -d "${size[@]}" "bash $WORK/inside.sh"
}

press() {
  terminal send-keys "$@"
}

resize() {
  terminal resize-window -x "$1" -y "$2"
}

# What is on the screen now.
screen() {
  terminal capture-pane -p
}

# shows TEXT [SECONDS]: waits until the screen has that text; fails the test otherwise.
shows() {
  local tries=$((${2-30} * 20))
  until screen | grep -qF -- "$1"; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then
      screen >&2
      fail "the screen never showed: $1"
    fi
    sleep 0.05
  done
}

# shows_not TEXT: waits until the screen lacks that text; fails the test otherwise.
shows_not() {
  local tries=600
  while screen | grep -qF -- "$1"; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then
      screen >&2
      fail "the screen went on showing: $1"
    fi
    sleep 0.05
  done
}

# given_back: the terminal is as it was before: screen, cursor, mouse, keys, settings.
given_back() {
  [ "$(terminal display-message -p '#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag}')" \
    = "0 1 0 0" ] || fail "the terminal is not as it was"
  wait_until 5 test -s "$WORK/after"
  cmp -s "$WORK/before" "$WORK/after" || fail "the terminal's settings are not as they were"
}

# ended CODE: the dashboard ends with that code and gives the terminal back.
ended() {
  shows "ended $1"
  [ "$(screen | wc -w)" -eq 2 ] || fail "the dashboard left something on the screen"
  given_back
}

# golden NAME: the screen is that of tests/golden/tui/NAME.txt, but for the time of
# day, the size of the store and empty lines at the end.  INFERSTAT_GOLDEN_UPDATE=1 takes a new one.
golden() {
  local file=$INFERSTAT_SOURCE/tests/golden/tui/$1.txt tries=600
  masked_screen() {
    printf '%s\n' "$(screen)" | sed -E '1s/[0-9]{2}:[0-9]{2}:[0-9]{2}/HH:MM:SS/; s/store +[0-9.]+ [KM]?B /store SIZE /'
  }
  if [ -n "${INFERSTAT_GOLDEN_UPDATE-}" ]; then
    sleep 0.5
    masked_screen >"$file"
  fi
  until masked_screen | cmp -s - "$file"; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then
      masked_screen | diff -u "$file" - >&2 || true
      fail "the screen is not that of $1.txt"
    fi
    sleep 0.05
  done
}
