#!/usr/bin/env bash
# The manual pages that are made from the tables in the code: complete, well formed, and
# their examples work.
. "$(dirname "$0")/../support/lib.sh"

schema=$INFERSTAT_BUILD/client/man/inferstat-schema.7
metrics=$INFERSTAT_BUILD/client/man/inferstat-metrics.7

# As a reader sees the words.
plain() {
  sed 's/\\-/-/g; s/\\(aq/'"'"'/g; s/\\(dq/"/g; s/\\&//g; s/\\e/\\/g' "$1"
}

for page in "$schema" "$metrics"; do
  [ -s "$page" ] || fail "no page $page"
  if command -v groff >/dev/null; then
    groff -man -Tutf8 -wall -z "$page" 2>"$WORK/warnings" || fail "$page: groff fails"
    [ ! -s "$WORK/warnings" ] || {
      cat "$WORK/warnings" >&2
      fail "$page: groff warns"
    }
  fi
done
plain "$schema" >"$WORK/schema"
plain "$metrics" >"$WORK/metrics"

expect_exit 0 "$MAKE_HISTORY" "$DB" --inferences 3000 --models 2 --hosts 2 --days 20 --all-kinds

# No text shows an address in a folder where any user may listen first.
root=$(dirname "$0")/../..
if grep -rnE 'ipc:///?(tmp|var/tmp|dev/shm)' "$root"/*.md "$root"/{client/man,proto,server,scripts} \
  "$root"/common/monitor; then
  fail "an address in a folder that any user may write to"
fi

# Every table and view has its part, which names every column of a table; those that all kinds
# have come first.
sed -n '/^\.SH "RECORDS"$/,/^\.SS /p' "$WORK/schema" >"$WORK/common"
sqlite3 -readonly "$DB" "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')
  AND name NOT LIKE 'sqlite_%'" >"$WORK/tables"
while read -r table; do
  sed -n "/^\\.SS \"$table\"\$/,/^\\.S[SH] /p" "$WORK/schema" >"$WORK/part"
  [ -s "$WORK/part" ] || fail "inferstat-schema.7 has no part for $table"
  [[ $table != v_* ]] || continue
  ! grep -q '(kind [1-9][0-9]*)' "$WORK/part" || cat "$WORK/common" >>"$WORK/part"
  while read -r column; do
    # What is stored in fewer bytes is described once, with the column that gives it back.
    [[ $column != *_stored ]] || column=${column%_stored}
    grep -q "^\\.BR \"$column\" " "$WORK/part" || fail "inferstat-schema.7 lacks $table.$column"
  done < <(sqlite3 -readonly "$DB" "SELECT name FROM pragma_table_xinfo('$table')")
done <"$WORK/tables"
expect_text "$WORK/schema" "version $(sqlite3 -readonly "$DB" 'PRAGMA user_version') of the schema"

# Every metric has its paragraph.
expect_exit 0 "$INFERSTAT" metrics --csv
cp "$WORK/out" "$WORK/list"
sed -i 1d "$WORK/list"
while IFS=, read -r metric kind _; do
  sed -n "/^\\.SS \"$kind\"\$/,/^\\.S[SH] /p" "$WORK/metrics" >"$WORK/part"
  grep -q "^\\.BR \"$metric\" " "$WORK/part" || fail "inferstat-metrics.7 lacks $kind.$metric"
done <"$WORK/list"

# The examples give rows; but for what went wrong, of which there is none.
awk '/^\.EX$/ { n++; next } /^\.EE$/ { next } n { print >("'"$WORK"'/example." n) }' <(sed -n '/^\.EX$/,/^\.EE$/p' "$WORK/schema")
count=0
for file in "$WORK"/example.*; do
  sqlite3 -readonly -bail "$DB" <"$file" >"$WORK/rows" 2>"$WORK/err" ||
    fail "an example fails: $(cat "$file" "$WORK/err")"
  case $(cat "$file") in
  *"state = 'dropped'"* | *"balanced = 0"*)
    [ ! -s "$WORK/rows" ] || fail "what went wrong here? $(cat "$WORK/rows")"
    ;;
  *) [ -s "$WORK/rows" ] || fail "an example gives no rows: $(cat "$file")" ;;
  esac
  count=$((count + 1))
done
[ "$count" -ge 9 ] || fail "only $count examples"

# So do those of the metrics, through the client.
sed -n '/^\.EX$/,/^\.EE$/p' "$WORK/metrics" | grep -v '^\.' | while read -r _ words; do
  read -ra words <<<"${words/--since 1h/--since 30d}"
  expect_exit 0 "$INFERSTAT" --db "$DB" "${words[@]}"
done
