#!/usr/bin/env bash
# Shows a fleet of GPU hosts on one machine that needs no GPU: a private collector, and hosts
# with 8 simulated devices each, some of which have trouble.
#
#   scripts/demo_fleet.sh [HOSTS] [--seconds N]
#
#   HOSTS         how many, 1 to 16 (default 8)
#   --seconds N   ends by itself after N seconds; without a terminal it always does
#                 (default 60), and prints what the fleet's commands say
#
# Each host is a real `inferstat-worker watch` on a library that plays NVIDIA's management
# library from a script, and an engine that answers requests at a steady pace, slower where
# its device has trouble.  The last host also runs a real language model.  The trouble comes
# again every two minutes:
#
#   gpu-2  cuda:3  gets too hot and reduces its clocks
#   gpu-3  cuda:0  has 8 PCIe lanes instead of 16
#   gpu-4  cuda:5  reports XID 48 and an uncorrected memory error
#   gpu-5  cuda:1  is almost full
#   gpu-6  cuda:2  another process computes on it
#   gpu-7  all     reach their power limit
#
# INFERSTAT_BIN names the folder bin of a build with its tests; without it that is built.  When it
# ends, by `q`, Ctrl-C, a closed terminal or an error, everything that it started has ended, and
# its records are gone.
set -euo pipefail

# shellcheck source=scripts/programs.sh
. "$(dirname "$0")/programs.sh"

DEVICES=8
CYCLE=120 # seconds until the trouble comes again
CYCLES=90

hosts=8
seconds=
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h)
    show_help
    exit 0
    ;;
  --seconds=*) set -- --seconds "${1#*=}" "${@:2}" ;;
  --seconds)
    [[ ${2-} =~ ^[1-9][0-9]{0,6}$ ]] || usage_error "--seconds needs a whole number above 0"
    seconds=$2
    shift 2
    ;;
  *)
    [[ $1 =~ ^([1-9]|1[0-6])$ ]] || usage_error "not a number of hosts from 1 to 16: $1"
    hosts=$1
    shift
    ;;
  esac
done
on_terminal || seconds=${seconds:-60}

find_programs inferstat inferstatd inferstat-worker fleet_engine fake_nvml
support=$bin/../tests/support
export INFERSTAT_TEST_NVML=$support/nvml/libfake-nvml.so
for file in "$support/fleet_engine" "$INFERSTAT_TEST_NVML"; do
  [ -f "$file" ] || usage_error "$file: missing: INFERSTAT_BIN is not of a build with its tests"
done

pids=()
collector_pid=
make_work

leave() {
  local code=$?
  trap '' INT TERM HUP
  set +e
  end "${pids[@]}" # before the collector, to which they say goodbye
  end "$collector_pid"
  rm -rf "$work"
  exit "$code"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# play SINCE UNTIL GPU WORSE BETTER: lines of a device's script: the settings WORSE from SINCE to
# UNTIL seconds of each cycle, then BETTER.
play() {
  local cycle setting
  for ((cycle = 0; cycle < CYCLES; cycle++)); do
    for setting in $4; do
      echo "at $((cycle * CYCLE + $1)) gpu $3 ${setting//=/ }"
    done
    for setting in $5; do
      echo "at $((cycle * CYCLE + $2)) gpu $3 ${setting//=/ }"
    done
  done
}

# slow SINCE UNTIL GPU FACTOR: the engine's options for the same time.
slow() {
  local cycle
  for ((cycle = 0; cycle < CYCLES; cycle++)); do
    printf -- '--slow %s:%s:%s:%s ' "$3" $((cycle * CYCLE + $1)) $((cycle * CYCLE + $2)) "$4"
  done
}
