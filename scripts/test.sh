#!/usr/bin/env bash
# Builds inferstat and runs its tests: what a user needs to trust the build.
#
#   scripts/test.sh [CTEST-OPTION]...     for example: scripts/test.sh -R unit
#
# Installs missing packages first (scripts/setup.sh).  Tests against the trained models of a
# folder run when INFERSTAT_TEST_MODELS names it, and say that they skipped when it does not.
# INFERSTAT_EMULATED=ON also tests the CUDA back end on an emulated runtime.  Ends with
# ctest's closing lines and its exit code.
set -euo pipefail

case ${1-} in
--help | -h)
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 0
  ;;
esac

cd "$(dirname "$0")/.."
scripts/setup.sh
scripts/build.sh release "-DINFERSTAT_EMULATED=${INFERSTAT_EMULATED-OFF}"
# Many tests wait for something: five at a time keep two cores busy.
# The fleets of hostile peers measure waits for minutes, alone on the machine: ctest -L fleet.
exec ctest --preset release --parallel 5 --label-exclude fleet "$@"
