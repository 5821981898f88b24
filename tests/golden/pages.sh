#!/usr/bin/env bash
# pages.sh MAKE_STORE: listings longer than a page are whole, in order, each row once.
. "$(dirname "$0")/../support/lib.sh"

rows=2500 # more than two pages
"$1" "$DB"
sqlite3 "$DB" "DELETE FROM operation; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
  WHERE i < $rows) INSERT INTO operation(run, stream, number, started_ns, received_ns, operation,
  duration_ns) SELECT 1, 7, i, 1774744260000000000 + i / 3, 1774744260000000000, 12, i FROM n"

# column NAME: the column of that name from a CSV on standard input.
column() {
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }'
}

"$INFERSTAT" --db "$DB" export operation --csv | column number >"$WORK/numbers"
seq "$rows" | cmp - "$WORK/numbers" || fail "export: not 1 to $rows"
"$INFERSTAT" --db "$DB" operations --csv | column number >"$WORK/numbers"
seq "$rows" -1 1 | cmp - "$WORK/numbers" || fail "operations: not $rows to 1"
"$INFERSTAT" --db "$DB" operations --csv --limit 1500 | column number >"$WORK/numbers"
seq "$rows" -1 1001 | cmp - "$WORK/numbers" || fail "operations --limit 1500"
"$INFERSTAT" --db "$DB" operations --json >"$WORK/out"
python3 -c 'import json, sys
numbers = [row["number"] for row in json.load(open(sys.argv[1]))["rows"]]
sys.exit(numbers != list(range(int(sys.argv[2]), 0, -1)))' "$WORK/out" "$rows" || fail "operations --json"
[ "$("$INFERSTAT" --db "$DB" operations | wc -l)" -eq 22 ] || fail "people see the 20 newest"
[ "$("$INFERSTAT" --db "$DB" operations --limit 0 | wc -l)" -eq $((rows + 1)) ] || fail "--limit 0"
[ "$("$INFERSTAT" --db "$DB" export operation --limit 1001 | wc -l)" -eq 1001 ] || fail "export --limit"

# The summary as CSV is one row of what JSON has, but for the stages.
"$INFERSTAT" --db "$DB" summary --json >"$WORK/summary.json"
"$INFERSTAT" --db "$DB" summary --csv >"$WORK/summary.csv"
python3 -c 'import csv, json, sys
member = json.load(open(sys.argv[1]))
del member["last_load_stages"]
[row] = csv.DictReader(open(sys.argv[2]))
text = lambda value: "" if value is None else value if isinstance(value, str) else json.dumps(value)
same = list(row) == list(member) and all(
    row[key] == text(value) or float(row[key]) == value for key, value in member.items())
sys.exit(not same)' "$WORK/summary.json" "$WORK/summary.csv" || fail "summary --csv"
