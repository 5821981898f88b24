#!/usr/bin/env bash
# scripts/zoo_report.sh: its tables, and the records of its rows in a store of its own or in that of
# a collector that is there.
. "$(dirname "$0")/../../support/lib.sh"
command -v "$INFERSTATD" >/dev/null || skip "no collector is built"

source=${INFERSTAT_SOURCE-$(dirname "$0")/../../..}

report() {
  "$source/scripts/zoo_report.sh" --build "$INFERSTAT_BUILD" --threads 1 --quick "$@"
}

expect_exit 0 report --out "$WORK/out-a" --batch 1,4 --compress ""
file=$WORK/out-a/report.md
for text in "| device | cpu, kernels " ", 1 threads |" "| all | 2 | " "| inference, p50 | at most 2.000 ms | 0.64 ms | " \
  " of 3 |" "| anchor | ds-cnn | 24,908 | " "| vision | GestureNet-Micro | "; do
  expect_text "$file" "$text"
done
# Every row of a table has as many cells as its heading.
awk -F'|' '!/^\|/ { cells = 0; next } cells == 0 { cells = NF } NF != cells { print; exit 1 }' "$file" ||
  fail "a row has other cells than its heading"
rows() {
  sqlite3 -readonly "$1" "select count(*), sum(extra ->> 'trials') from v_operation where operation like 'zoo %'"
}
[ "$(rows "$WORK/out-a/store.db")" = "6|30" ] || fail "not three models with two batch sizes: $(rows "$WORK/out-a/store.db")"

start_collector --log-level info
expect_exit 0 report --out "$WORK/out-b" --collector "$COLLECTOR" --batch 1 --compress ""
[ ! -e "$WORK/out-b/store.db" ] || fail "a collector was started"
[ "$(rows "$DB")" = "3|15" ] || fail "not three models: $(rows "$DB")"
stop collector

expect_exit 2 report --db x --collector "$COLLECTOR"
expect_text "$WORK/err" "--db: not with --collector"
expect_exit 2 report --threads none
expect_text "$WORK/err" "--threads none: not a number"
expect_exit 2 report --fast
expect_text "$WORK/err" "--fast: unknown option (see --help)"
