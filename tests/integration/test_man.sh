#!/usr/bin/env bash
# The manual pages and the programs' own help name the same commands and options; guides and
# README name only options and pages that exist.
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
  check_roff "$1"
}

# check_roff PAGE: groff formats it without a warning.
check_roff() {
  command -v groff >/dev/null || return 0
  groff -man -Tutf8 -wall -z "$pages/$1" 2>"$WORK/warnings" || fail "$1: groff fails"
  [ ! -s "$WORK/warnings" ] || {
    cat "$WORK/warnings" >&2
    fail "$1: groff warns"
  }
}

# tagged PAGE: the options that a paragraph under OPTIONS begins with.
tagged() {
  sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' "$pages/$1" | grep -A1 -E '^\.T[PQ]' |
    grep -E '^\.(B|BI|BR) ' >"$WORK/tags"
  options_in "$WORK/tags"
}

for program in "$INFERSTAT" "$WORKER" "$INFERSTATD"; do # -h and -V everywhere
  diff <("$program" --help) <("$program" -h) || fail "$program: -h"
  diff <("$program" --version) <("$program" -V) || fail "$program: -V"
done
"$INFERSTAT" --help >"$WORK/help"
compare inferstat.1
options_in "$WORK/help" | diff - <(tagged inferstat.1) >&2 || fail "inferstat.1 OPTIONS is not whole"
while read -r name; do
  grep -qE "^\.(B|BR|BI) .*\b$name\b" "$pages/inferstat.1" ||
    fail "inferstat.1 lacks the command $name"
done < <(sed -n '1,/^Options/s/^  \([a-z-]\{1,\}\) .*/\1/p' "$WORK/help")

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

# The guides and README, whose options belong to a program or a script of ours, or to the
# tools that build with the library.
[ "$(wc -l <"$INFERSTAT_SOURCE/README.md")" -le 250 ] || fail "README.md is longer than a reader finishes"
options_in "$pages"/inferstat.1 "$pages"/*.8 "$pages"/inferstat-worker.1 "$INFERSTAT_SOURCE"/scripts/*.sh >"$WORK/known"
printf -- '--%s\n' install prefix cflags libs >>"$WORK/known"
options_in "$pages"/*.7 "$INFERSTAT_SOURCE/README.md" | comm -23 - <(sort -u "$WORK/known") >"$WORK/unknown"
[ ! -s "$WORK/unknown" ] || fail "guides or README name unknown options: $(tr '\n' ' ' <"$WORK/unknown")"
for page in "$pages"/*.[57]; do
  check_roff "${page##*/}"
done
made="inferstat-schema.7 inferstat-metrics.7"
while read -r page; do
  [ -e "$pages/$page" ] || [[ " $made " == *" $page "* ]] || fail "no manual page $page"
done < <(sed 's/\\-/-/g; s/ (\([1-8]\))/(\1)/g' "$pages"/*.[1-8] "$INFERSTAT_SOURCE/README.md" |
  grep -oE '\binferstat[a-z-]*\([1-8]\)' | sed 's/(\(.\))/.\1/' | sort -u)

# The page of the alerts has every built-in rule and every source.
for file in core/alert/alert_builtin.h core/query/alert_rule.h; do
  while read -r name; do
    grep -q "$name" "$pages/inferstatd-alerts.5" || fail "inferstatd-alerts.5 lacks $name"
  done < <(sed -nE 's/.*"alert ([a-z_]+):.*/\1/p; s/^    X\([A-Z_]+, "([a-z_]+_[a-z_]+)", [A-Z]+.*/\1/p' \
    "$INFERSTAT_SOURCE/common/$file")
done
