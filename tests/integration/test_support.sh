#!/usr/bin/env bash
# tests/support/lib.sh itself: a test fails when a program ends badly or writes a
# sanitizer's report, also when nobody looks, and leaves nothing behind.
. "$(dirname "$0")/../support/lib.sh"

lib=$(realpath "$(dirname "$0")/../support/lib.sh")

# A program that ends with the code given when it is asked to, and says so.
cat >"$WORK/program" <<'EOF'
trap 'exit "$1"' TERM
echo "$2"
while :; do sleep 0.02; done
EOF

# verdict CODE TEXT LINES: a test of those lines ends with that code and says the text.
verdict() {
  local code=0
  printf '. %q\n%s\n' "$lib" "$3" >"$WORK/inner.sh"
  mkdir "$WORK/t"
  TMPDIR=$WORK/t PROGRAM=$WORK/program bash "$WORK/inner.sh" >"$WORK/said" 2>&1 || code=$?
  [ "$code" -eq "$1" ] || fail "ended with $code, not $1: $3: $(cat "$WORK/said")"
  [ -z "$2" ] || expect_text "$WORK/said" "$2"
  rmdir "$WORK/t" || fail "something is left in the temporary folder"
}

# The words are for the inner test.
# shellcheck disable=SC2016
begin='said() { grep -q up "$WORK/x.log"; }; begin() { start x bash "$PROGRAM" "$@"; wait_until 10 said; }'
verdict 0 "" "$begin; begin 0 up; stop x"
verdict 0 "" "$begin; begin 0 up; stop x KILL"
verdict 0 "" "$begin; begin 3 up; stop x TERM 3"
verdict 1 "x ended with 66, not 0" "$begin; begin 66 up; stop x"
verdict 1 "x ended with 0, not 3" "$begin; begin 0 up; stop x TERM 3"
verdict 1 "x ended with 1, not 0" "start x false; wait_ended x 5"
verdict 1 "x ended with 143, not 0" "start x sleep 60; stop x"
verdict 0 "" "$begin; begin 0 up"
verdict 0 "" "start x sleep 60"
verdict 1 "x, left running, ended with 66" "$begin; begin 66 up"
verdict 77 "" "$begin; begin 66 up; skip early"
verdict 1 "a report in x.log" "$begin; begin 0 'up: runtime error: a report in x.log'; stop x KILL"
verdict 1 "report in x.log" "$begin; begin 0 'up ThreadSanitizer: x'"
verdict 1 "report in err" "expect_exit 0 bash -c 'echo AddressSanitizer >&2'"

# run_test ends as the test does, and fails one that takes more processor time than it may.
run_test=$INFERSTAT_BUILD/tests/support/run_test
expect_exit 0 "$run_test" --limit 60 true
expect_text "$WORK/out" "run_test: processor time 0."
expect_exit 77 "$run_test" bash -c 'exit 77'
# shellcheck disable=SC2016
expect_exit 143 "$run_test" bash -c 'kill -TERM "$BASHPID"'
expect_exit 127 "$run_test" "$WORK/not-there"
busy='for ((i = 0; i < 50000; i++)); do :; done'
expect_exit 1 "$run_test" --limit 0.001 bash -c "$busy"
expect_text "$WORK/out" "more than the 0.001 s that a unit test may take"
expect_exit 1 "$run_test" --limit 0.001 bash -c "bash -c '$busy'; true"
expect_exit 3 "$run_test" --limit 0.001 bash -c "$busy; exit 3"

# A test of one thread that creates another ends at once.
expect_exit 134 "$run_test" "$INFERSTAT_BUILD/tests/support/creates_thread"
expect_text "$WORK/err" "pthread_create: this test is labelled one_thread"
