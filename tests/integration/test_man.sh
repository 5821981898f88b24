#!/usr/bin/env bash
# The manual pages and the programs' own help name the same commands and options.
. "$(dirname "$0")/../support/lib.sh"

pages=$INFERSTAT_SOURCE/client/man

# options_in FILE...: the long options that the texts name.
options_in() {
  sed 's/\\//g' "$@" | grep -oE -- '--[a-z][a-z-]*' | sort -u
}

# names_under HEADING: the words that the help lists under it.
names_under() {
  sed -n "/^$1:/,/^\$/s/^  \([a-z-]\{1,\}\) .*/\1/p" "$WORK/help"
}

# compare PAGE: what $WORK/help names against the page.
compare() {
  options_in "$WORK/help" >"$WORK/from_help"
  options_in "$pages/$1" >"$WORK/from_page"
  diff "$WORK/from_help" "$WORK/from_page" >"$WORK/difference" || {
    cat "$WORK/difference" >&2
    fail "$1 and --help name different options (< help, > page)"
  }
  if command -v groff >/dev/null; then
    groff -man -Tutf8 -wall -z "$pages/$1" 2>"$WORK/warnings" || fail "$1: groff fails"
    [ ! -s "$WORK/warnings" ] || {
      cat "$WORK/warnings" >&2
      fail "$1: groff warns"
    }
  fi
}

# tagged PAGE: the options that a paragraph under OPTIONS begins with.
tagged() {
  sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' "$pages/$1" | grep -A1 -E '^\.T[PQ]' |
    grep -E '^\.(B|BI|BR) ' >"$WORK/tags"
  options_in "$WORK/tags"
}

"$INFERSTAT" --help >"$WORK/help"
compare inferstat.1
options_in "$WORK/help" | diff - <(tagged inferstat.1) >&2 || fail "inferstat.1 OPTIONS is not whole"
while read -r name; do
  grep -qE "^\.(B|BR|BI) .*\b$name\b" "$pages/inferstat.1" ||
    fail "inferstat.1 lacks the command $name"
done < <(names_under Commands)

if command -v "$WORKER" >/dev/null; then
  "$WORKER" --help >"$WORK/help"
  names_under workloads >"$WORK/workloads"
  while read -r name; do
    "$WORKER" "$name" --help >>"$WORK/help"
    grep -q "$name" <(sed 's/\\//g' "$pages/inferstat-worker.1") ||
      fail "inferstat-worker.1 lacks the workload $name"
  done <"$WORK/workloads"
  compare inferstat-worker.1
fi

if command -v "$INFERSTATD" >/dev/null && [ -e "$pages/inferstatd.8" ]; then
  "$INFERSTATD" --help >"$WORK/help"
  compare inferstatd.8
fi
