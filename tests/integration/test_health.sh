#!/usr/bin/env bash
# Devices that are throttled, played by the fake management library, are what the client's commands
# name as the cause; hostile names of hosts, drivers and processes do no harm.
. "$(dirname "$0")/../support/lib.sh"

export INFERSTAT_COLLECTOR=$COLLECTOR
export INFERSTAT_TEST_NVML=$INFERSTAT_BUILD/tests/support/nvml/libfake_nvml.so
[ -f "$INFERSTAT_TEST_NVML" ] || skip "no simulated devices"

# host NAME ENGINE-OPTIONS...: its sampler, with the devices of $WORK/NAME.devices, and its engine:
# some 15 requests a second.
host() {
  local name=$1
  shift
  mkdir -m 0700 "$WORK/run/$name"
  export INFERSTAT_HOST=$name INFERSTAT_RUN_DIR=$WORK/run/$name INFERSTAT_SPOOL=$WORK/spool-$name
  INFERSTAT_TEST_NVML_SCRIPT=$WORK/$name.devices start "watch-$name" "$WORKER" watch
  start "engine-$name" "$INFERSTAT_BUILD/tests/support/fleet_engine" --token-ms 5 --tokens 8 "$@"
}

# On a the device is throttled for a while, on b always, on c never.
cat >"$WORK/a.devices" <<'END'
gpu all util 90
at 8 gpu 0 throttle 32
at 8 gpu 0 temperature 91
at 8 gpu 0 sm_clock 990
at 16 gpu 0 throttle 0
at 16 gpu 0 sm_clock 1980
END
printf '%s\n' 'gpu all util 90' 'gpu 0 throttle 4' 'gpu 0 sm_clock 1500' >"$WORK/b.devices"
echo 'gpu all util 90' >"$WORK/c.devices"
# shellcheck disable=SC2119 # it has no options
start_collector
# Its requests take 330 ms instead of 55: longer than a busy machine delays an ordinary one.  The
# engine may begin later than the device: it is slow for a little less time.
host a --slow 0:8:15.8:6
host b --slow 0:0:1000:1.3
host c

# What throttles now, in words; its processes and limits as keys of JSON.
throttled() { "$INFERSTAT" devices --host a >"$WORK/out" && grep -q 'throttling: software thermal' "$WORK/out"; }
wait_until 30 throttled
expect_exit 0 "$INFERSTAT" devices --host a --json
python3 -c 'import json, sys
row = json.load(open(sys.argv[1]))["rows"][0]
assert row["throttle_reasons"] == 32 and row["events"] == "throttling", row
assert row["temperature_celsius"] > row["slowdown_celsius"] - 5 and row["sm_clock_hz"] == 990000000, row
assert row["fan_ratio"] == 0.3 and row["window_ns"] is None, row' "$WORK/out" || fail "not that device"
expect_exit 0 "$INFERSTAT" now
expect_text "$WORK/out" "Trouble: a cuda:0: throttling: software thermal"
[ "$("$INFERSTAT" now --host a --csv | wc -l)" -eq 2 ] || fail "the sampler of a is a row of now"

# Once it is over: how long it lasted, and what it cost.
ended() { [ "$("$INFERSTAT" export event --format csv | grep -c ',throttling,cuda:0,[1-9]')" -ge 1 ]; }
wait_until 40 ended
sleep 6 # requests after it, to compare with
expect_exit 0 "$INFERSTAT" events --host a --json
python3 -c 'import json, sys
rows = [row for row in json.load(open(sys.argv[1]))["rows"] if row["event"] == "throttling"]
row, = rows
assert row["detail"] == "software thermal" and row["code"] == 32, row
assert 6.5e9 < row["duration_ns"] < 10.5e9 and row["ended_ns"], row
assert row["tokens_per_second_ratio_high"] < 0.8 and row["tokens_lost"] > 0, row' "$WORK/out" ||
  fail "not what it cost"
expect_exit 0 "$INFERSTAT" events --host a
expect_text "$WORK/out" "throttling: software thermal"
expect_text "$WORK/out" "llama-8b: TTFT"

# The cause of the slowest requests, of a host's difference from others, and of a comparison.
expect_exit 0 "$INFERSTAT" inferences --slowest 5 --host a
[ "$(grep -c '  throttle$' "$WORK/out")" -ge 4 ] || fail "slow for other reasons: $(cat "$WORK/out")"
expect_text "$WORK/out" "(software thermal)"
expect_exit 0 "$INFERSTAT" fleet tokens_per_second
grep -qE '^b .* -2[0-9]\.. %.*throttled 100.0 % by power cap' "$WORK/out" || fail "no cause: $(cat "$WORK/out")"
expect_exit 0 "$INFERSTAT" baseline save c --host c
expect_exit 2 "$INFERSTAT" compare --against c --host b
expect_text "$WORK/err" "sm_clock"
expect_exit 1 "$INFERSTAT" compare --against c --host b --force
# a while it was throttled, against a before.
read -r before since until < <("$INFERSTAT" events --host a --json | python3 -c 'import json, sys, time
row, = [row for row in json.load(sys.stdin)["rows"] if row["event"] == "throttling"]
began, ended = row["started_ns"] // 10**9, (row["started_ns"] + row["duration_ns"]) // 10**9
print(*(time.strftime("%FT%TZ", time.gmtime(at)) for at in (began - 1, began, ended)))')
expect_exit 0 "$INFERSTAT" baseline save before --host a --until "$before"
expect_exit 0 "$INFERSTAT" baseline save during --host a --since "$since" --until "$until"
"$INFERSTAT" compare before during --json >"$WORK/out" || [ $? -ne 2 ] || fail "it is refused"
python3 -c 'import json, sys
rows = {row["metric"]: row for row in json.load(open(sys.argv[1]))["rows"]}
clock, held_back = rows["sm_clock_hz"], rows["throttled_ratio"]
assert rows["e2e_ns"]["after_median"] > 2 * rows["e2e_ns"]["before_median"], rows
assert (clock["before_median"], clock["after_median"], clock["verdict"]) == (1980e6, 990e6, None), clock
assert held_back["before_total"] == 0 and held_back["after_total"] > 0.7, held_back' "$WORK/out" ||
  fail "no reason"
expect_exit 0 "$INFERSTAT" avg sm_clock_hz --by host --since 1h
expect_text "$WORK/out" "1500 MHz"
expect_exit 0 "$INFERSTAT" devices --since 1h --host b
expect_text "$WORK/out" "100.0 %"
for name in a b c; do
  stop "engine-$name"
  stop "watch-$name"
done

# Names that would clear the screen, break the table or end a line of CSV.
cp "$(command -v sleep)" "$WORK/"$'\e[2J"\n,'
start hostile "$WORK/"$'\e[2J"\n,' 600
printf '%s\n' 'driver 1\x1b[31m",\x0a' 'name \x1b]0;title\x07' "process 0 ${started_pids[hostile]} 1000000000" \
  >"$WORK/d.devices"
export INFERSTAT_HOST=$'d\e[2J,"\n' INFERSTAT_RUN_DIR=$WORK/run/d INFERSTAT_SPOOL=$WORK/spool-d
mkdir -m 0700 "$WORK/run/d"
INFERSTAT_TEST_NVML_SCRIPT=$WORK/d.devices start watch-d "$WORKER" watch
listed() { "$INFERSTAT" devices --csv | grep -q '953\.7 MB'; }
wait_until 20 listed
for command in devices hosts events now 'samples device' 'query device_processes' runs 'devices --since 1h'; do
  read -ra words <<<"$command"
  "$INFERSTAT" "${words[@]}" >"$WORK/out" 2>&1 || true
  ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' "$WORK/out" || fail "$command prints control characters"
  "$INFERSTAT" "${words[@]}" --json >"$WORK/out" 2>/dev/null || true
  python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$WORK/out" || fail "$command --json is none"
done
"$INFERSTAT" devices --csv | python3 -c 'import csv, sys
rows = list(csv.reader(sys.stdin))
assert len({len(row) for row in rows}) == 1, rows' || fail "devices --csv is none"
echo ok
