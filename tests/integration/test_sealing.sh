#!/usr/bin/env bash
# Sealed history over a real collector: it is killed while it seals, answers the same with
# and without, and what is sealed is cleared, backed up and bundled.
. "$(dirname "$0")/../support/lib.sh"

hot=$WORK/hot.db
"$MAKE_HISTORY" "$hot" --inferences 60000 --days 1 --hosts 10 >/dev/null || fail "no history"
cp "$hot" "$DB"

rows() { sqlite3 -readonly "$1" "SELECT count(*) + (SELECT CAST(total(rows) AS INTEGER) FROM sealed) FROM inference"; }
sealed() { sqlite3 -readonly "$1" "SELECT CAST(total(rows) AS INTEGER) FROM sealed"; }
seal_more_than() { [ "$(sealed "$DB")" -gt "$1" ]; }
ask() { "$INFERSTAT" --db "$1" "${@:2}"; }

# ---- The same answers at any time ------------------------------------------------------

same() {
  ask "$hot" "$@" >"$WORK/hot.out" 2>&1 || fail "$*: $(cat "$WORK/hot.out")"
  ask "$DB" "$@" >"$WORK/sealed.out" 2>&1 || fail "$*: $(cat "$WORK/sealed.out")"
  sed -Ei 's/"(store_bytes|sealed_rows|sealed_bytes)": [0-9]*//g' "$WORK/hot.out" "$WORK/sealed.out"
  diff "$WORK/hot.out" "$WORK/sealed.out" >&2 || fail "$*: differs"
}

# ---- Killed while it seals --------------------------------------------------------------

since=$(date -u -d "12 hours ago" +%Y-%m-%dT%H:%M:%SZ)
for wanted in 0 16384 32768; do
  start collector "$INFERSTATD" --listen "ipc://$WORK/c" --db "$DB" --seal-after 1h
  while ! seal_more_than "$wanted"; do # what is asked meanwhile is answered as before
    [ "$SECONDS" -lt 240 ] || fail "sealing does not go on: $(sealed "$DB")"
    same avg e2e_ns --by run --since "$since" --json
  done
  stop collector KILL 137
  [ "$(rows "$DB")" -eq 60000 ] || fail "killed: $(rows "$DB") rows"
done
seal_more_than 40000 || fail "little is sealed: $(sealed "$DB")"

# ---- The same answers ---------------------------------------------------------------------

same summary --json
ask "$DB" summary | grep -q "^sealed  *$(sealed "$DB") records" || fail "the summary says nothing of sealed records"
same avg e2e_ns --by model --json
same avg ttft_ns --by run --json
same inferences --limit 100 --json
same inferences --slowest 5 --json
same audit --json
same export inference --csv

# ---- Copies -------------------------------------------------------------------------------

expect_exit 0 ask "$DB" backup "$WORK/copy.db"
[ "$(sealed "$WORK/copy.db")" -eq "$(sealed "$DB")" ] || fail "the backup has other sealed rows"
expect_exit 0 ask "$WORK/copy.db" audit
expect_exit 0 ask "$DB" export --bundle "$WORK/bundle.db"
[ "$(sqlite3 "$WORK/bundle.db" 'SELECT count(*) FROM inference')" -eq 60000 ] || fail "the bundle lacks rows"
expect_exit 0 ask "$WORK/bundle.db" audit

# ---- Cleared -----------------------------------------------------------------------------

expect_exit 0 ask "$DB" clear --model model-00 --yes
expect_exit 0 ask "$hot" clear --model model-00 --yes
[ "$(rows "$DB")" -eq "$(rows "$hot")" ] || fail "cleared: $(rows "$DB") rows, not $(rows "$hot")"
expect_exit 0 ask "$DB" audit
same avg e2e_ns --by run --json
