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
# its device has trouble, some of it again every two minutes:
#
#   gpu-2  cuda:3  gets too hot and reduces its clocks, for 50 seconds
#   gpu-3  cuda:0  has 8 PCIe lanes instead of 16, always
#   gpu-4  cuda:5  reports XID 48 and an uncorrected memory error
#   gpu-5  cuda:1  is almost full
#   gpu-6  cuda:2  is used by another process, for 50 seconds
#   gpu-7  all     are at their power limit, always
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
export INFERSTAT_TEST_NVML=$support/nvml/libfake_nvml.so
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

# again SECOND LINE: the same line of a device's script in each cycle.
again() {
  local cycle
  for ((cycle = 0; cycle < CYCLES; cycle++)); do
    echo "at $((cycle * CYCLE + $1)) $2"
  done
}

# devices_of HOST ENGINE: what the devices of a host do; ENGINE is the process that uses them.
devices_of() {
  local device
  printf '%s\n' "gpus $DEVICES" "uuid $(uuid_of "$1")" 'delay 20 60' 'noise 0.04' \
    'gpu all util 88' 'gpu all memory_util 51' 'gpu all memory_used 61000000000' 'gpu all power 540' \
    'gpu all temperature 64' 'gpu all sm_active 71' 'gpu all tensor_active 38' 'gpu all dram_active 55'
  for ((device = 0; device < DEVICES; device++)); do
    echo "process $device $2 60000000000"
  done
  case $1 in
  2) play 20 70 3 'throttle=32 temperature=91 sm_clock=990' 'throttle=0 temperature=64 sm_clock=1980' ;;
  3) echo 'gpu 0 pcie_width 8' ;;
  4)
    again 30 'xid 5 48'
    echo 'at 30 gpu 5 ecc_uncorrected 2'
    ;;
  5) echo 'gpu 1 memory_used 149500000000' ;;
  6)
    again 25 "process 2 $$ 20000000000"
    again 75 "process 2 $$ 0"
    ;;
  7) printf '%s\n' 'gpu all throttle 4' 'gpu all power 650' 'gpu all sm_clock 1500' ;;
  esac
}

# slow_devices HOST: the same trouble as options of the engine.
slow_devices() {
  local device
  case $1 in
  2) echo --slow 3:20:70:2 ;;
  3) echo --slow "0:0:$CYCLE:1.2" ;;
  6) echo --slow 2:25:75:1.6 ;;
  7)
    for ((device = 0; device < DEVICES; device++)); do
      echo --slow "$device:0:$CYCLE:1.3"
    done
    ;;
  esac
}

uuid_of() {
  printf 'GPU-%08x-0000-0000-0000-' "$1"
}

# start_host HOST: its engine, then its sampler; each host has folders of its own, as on a machine
# of its own.
start_host() {
  local name=gpu-$1 options
  export INFERSTAT_HOST=$name INFERSTAT_RUN_DIR=$work/$name INFERSTAT_SPOOL=$work/$name/spool
  export INFERSTAT_TEST_NVML_SCRIPT=$work/$name/devices
  mkdir -m 700 "$work/$name"
  read -ra options <<<"$(slow_devices "$1" | tr '\n' ' ')"
  start "$work/$name/engine.log" "$support/fleet_engine" --devices "$DEVICES" --uuid "$(uuid_of "$1")" \
    --cycle "$CYCLE" --token-ms 40 "${options[@]}" </dev/null
  pids+=($!)
  devices_of "$1" $! >"$work/$name/devices"
  start "$work/$name/watch.log" "$bin/inferstat-worker" watch </dev/null
  pids+=($!)
}

check_alive() {
  local host pid
  kill -0 "$collector_pid" 2>/dev/null || give_up inferstatd "$work/collector.log" "$collector_pid"
  for ((host = 1; host <= hosts; host++)); do
    pid=${pids[2 * host - 2]}
    kill -0 "$pid" 2>/dev/null || give_up "fleet_engine of gpu-$host" "$work/gpu-$host/engine.log" "$pid"
    pid=${pids[2 * host - 1]}
    kill -0 "$pid" 2>/dev/null || give_up "inferstat-worker watch of gpu-$host" "$work/gpu-$host/watch.log" "$pid"
  done
}

start_collector "$work/fleet.db"
for ((host = 1; host <= hosts; host++)); do
  start_host "$host"
done
cat >&2 <<END
$hosts hosts with $DEVICES devices each; in another terminal:

  export INFERSTAT_COLLECTOR=$INFERSTAT_COLLECTOR
  PATH=$(realpath "$bin"):\$PATH
  inferstat devices        # also: hosts, events, now, fleet
  inferstat inferences --slowest 5

After a minute events have a cost, and fleet has enough requests.
END

# Waits for Enter; `q` ends.
wait_for_enter() {
  local key
  printf 'Enter opens the dashboard; q ends everything. '
  while :; do
    check_alive
    if ! IFS= read -rsn1 -t 1 key; then
      continue
    fi
    case $key in
    '') break ;;
    q) printf '\n'; exit 0 ;;
    esac
  done
  printf '\n'
}

if on_terminal; then
  [ -n "$seconds" ] || wait_for_enter
  check_alive
  code=0
  timeout --foreground "${seconds:-0}" "$bin/inferstat" top || code=$?
  [ "$code" -ne 124 ] || code=0
  check_alive
  exit "$code"
fi
for ((second = 1; second <= seconds; second++)); do
  sleep 1
  check_alive
done
for command in 'devices --limit 0' hosts events fleet; do
  printf '\n$ inferstat %s\n' "$command"
  # shellcheck disable=SC2086 # a command and its option
  "$bin/inferstat" $command || true
done
