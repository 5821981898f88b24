#!/usr/bin/env bash
# The library as an engine's author sees it.
#
#   test_library.sh exports LIBRARY HEADER
#                                     it exports what the header declares, and
#                                     nothing else
#   test_library.sh example PROGRAM   the example runs without a collector, says so
#                                     once, counts what it made, names what was not
#                                     acknowledged, ends well, and refuses arguments
#                                     that are no counts
#   test_library.sh standalone C_COMPILER HEADER LIBRARY EXAMPLE CXX_COMPILER
#                                     header and library alone are enough to build it,
#                                     as C99 and as C++17
set -euo pipefail

folder=$(mktemp -d "${TMPDIR:-/tmp}/inferstat-test-XXXXXX")
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "test_library: $*" >&2
  exit 1
}

exports() {
  local wanted symbols
  wanted=$(grep -v -e '^//' -e '^typedef' "$2" | grep -oE '\binferstat_[a-z0-9_]+\(' | tr -d '(' | sort -u)
  symbols=$(nm -D --defined-only "$1" | awk '{ print $NF }' | sort -u)
  [[ -n $wanted ]] || fail "no calls in $2"
  diff <(echo "$wanted") <(echo "$symbols") || fail "not what the header declares"
  readelf -d "$1" | grep -q 'SONAME.*libinferstat\.so\.0\]' || fail "no soname libinferstat.so.0"
}

run_example() {
  local output status=0
  output=$(INFERSTAT_COLLECTOR="ipc://$folder" INFERSTAT_RUN_DIR="$folder" \
  INFERSTAT_SPOOL="$folder/spool" "$1" 20 10 2>"$folder/errors") || status=$?
  [[ $status -eq 0 ]] || fail "ended with $status: $(cat "$folder/errors")"
  [[ $output =~ ^"20 requests of 10 tokens; records made "([0-9]+)", acknowledged 0, lost 0"$ ]] ||
  fail "said: $output"
  # The load with its three stages, the inferences, and the gaps.
  [[ ${BASH_REMATCH[1]} -ge 25 ]] || fail "only ${BASH_REMATCH[1]} records"
  [[ $(grep -c 'does not answer' "$folder/errors") -eq 1 ]] || fail "$(cat "$folder/errors")"
  [[ $(grep -c '\[INFER\] model=toy prompt=8 generated=10 ' "$folder/errors") -eq 20 ]] ||
  fail "$(cat "$folder/errors")"
  [[ $(grep -c '\[LOAD\] model=toy ' "$folder/errors") -eq 1 ]] || fail "no [LOAD] line"
  local kept=("$folder"/*.run "$folder"/spool/*)
  [[ -f ${kept[0]} && -d ${kept[1]} ]] || fail "what was not acknowledged is not kept"
  [[ $(grep -c "^example_engine: ${BASH_REMATCH[1]} records were not acknowledged and stay in ${kept[1]}: " \
  "$folder/errors") -eq 1 ]] || fail "$(cat "$folder/errors")"
  rm -r "${kept[@]}"

  local arguments
  for arguments in abc -1 '' '10 x' '10 20 30' 1000001; do
    status=0
    # Unquoted: several arguments, or none but the empty one.
    # shellcheck disable=SC2086
    output=$("$1" ${arguments:-""} 2>&1) || status=$?
    [[ $status -eq 2 && $output == usage:* ]] || fail "'$arguments': ended with $status: $output"
  done
}

standalone() {
  cp "$2" "$folder/inferstat.h"
  "$1" -std=c99 -pedantic -Wall -Wextra -Werror -I"$folder" "$4" -o "$folder/engine" "$3" \
  -Wl,-rpath,"$(dirname "$3")"
  run_example "$folder/engine"
  "$5" -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -I"$folder" "$4" -o "$folder/engine++" \
  -x none "$3" -Wl,-rpath,"$(dirname "$3")"
  run_example "$folder/engine++"
}

case ${1-} in
exports) exports "$2" "$3" ;;
example) run_example "$2" ;;
standalone) standalone "$2" "$3" "$4" "$5" "$6" ;;
*) fail "usage: test_library.sh exports|example|standalone ..." ;;
esac
