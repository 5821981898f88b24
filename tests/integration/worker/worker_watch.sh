#!/usr/bin/env bash
# Samples and events of a host whose GPUs a script plays: `watch`, two samplers on one host, a driver
# that hangs, a workload beside its samples.
# shellcheck disable=SC2119  # a collector needs no more options than it has
. "$(dirname "$0")/../../support/lib.sh"

export INFERSTAT_TEST_NVML=$INFERSTAT_BUILD/tests/support/nvml/libfake_nvml.so
export INFERSTAT_TEST_NVML_SCRIPT=$WORK/gpus
[ -f "$INFERSTAT_TEST_NVML" ] || skip "no $INFERSTAT_TEST_NVML"

# ask SQL: what the store answers.
ask() {
  sqlite3 -readonly "$DB" "$1"
}

# holds SQL: whether it answers 1.
holds() {
  [ "$(ask "$1")" = 1 ]
}

# event NAME WHERE: whether the store has one such event.
event() {
  holds "select count(*) = 1 from v_event where event = '$1' and ($2)"
}

start_collector

cat >"$WORK/gpus" <<'SCRIPT'
gpus 2
at 1.5 gpu 0 throttle 64
at 3.5 gpu 0 throttle 0
at 2 xid 1 79
at 5 unplug 1
at 7 plug 1
SCRIPT
start first "$WORKER" --collector "$COLLECTOR" watch --device-interval 200ms
wait_until 20 has_rows device_sample 4
mkdir -m 0700 "$WORK/other" # one with another folder of run files waits, too
start second env INFERSTAT_RUN_DIR="$WORK/other" "$WORKER" --collector "$COLLECTOR" watch \
  --device-interval 200ms --duration 5m
wait_until 20 grep -q 'another process of this user samples them' "$WORK/second.log"
wait_until 60 event throttling "duration_ns between 1500000000 and 2600000000 and code = 64"
wait_until 60 event xid "duration_ns = 0 and code = 79"
wait_until 60 event device_lost "duration_ns > 0"
holds "select count(distinct device) = 2 and count(distinct run) = 1 from device_sample" ||
  fail "two samplers, or not two devices"
holds "select count(*) = 2 from device" || fail "not every device is described once"
holds "select count(*) > 0 from host_sample where cpu_util_ratio between 0 and 1" ||
  fail "no samples of the host"
holds "select min(energy_used_joules / (duration_ns / 1e9)) > 100
          and max(energy_used_joules / (duration_ns / 1e9)) < 140 from device_sample
       where energy_used_joules is not null" || fail "energy that was not used"
expect_text "$WORK/first.log" "devices: sampling cuda:1"
expect_text "$WORK/first.log" "cuda:1: the driver reports XID 79"

# The second takes over.
rows=$(ask "select count(*) from device_sample")
stop first
wait_until 20 has_rows device_sample $((rows + 4))
wait_until 20 grep -q 'devices: sampling this host' "$WORK/second.log"
stop second

# Sixteen devices, one of them in two instances; the energy counter of another goes back to 0 and
# its samples go on: none of them has energy that was not used.
printf 'gpus 16\nmig 3 2\nat 1 gpu 5 energy 0\n' >"$WORK/gpus"
start many "$WORKER" --collector "$COLLECTOR" watch --device-interval 200ms
samples="device_sample s where s.run = (select max(run) from run)"
of_fifth="s.device = (select id from name where text = 'cuda:5')"
wait_until 20 holds "select count(*) > 3 from $samples and $of_fifth and energy_joules < 1e6"
stop many
holds "select count(distinct device) = 18 from $samples" || fail "not 16 devices and 2 instances"
holds "select count(*) = 0 from $samples
       and energy_used_joules / (duration_ns / 1e9) not between 100 and 140" ||
  fail "energy that was not used, of a counter that went back"
holds "select count(*) > 0 from $samples and $of_fifth and energy_joules < 1e6
       and energy_used_joules is not null" || fail "no energy after the counter went back"

# A driver that hangs for half a minute: that is recorded, and the end does not wait for it.
printf 'gpus 1\nat 1 hang 30\n' >"$WORK/gpus"
start hung "$WORKER" --collector "$COLLECTOR" watch --device-interval 200ms
wait_until 20 event driver_hang "duration_ns is null and device is null"
SECONDS=0
stop hung
[ "$SECONDS" -lt 10 ] || fail "the end waits for the driver: $SECONDS s"
expect_text "$WORK/hung.log" "the GPU driver does not answer"

# A workload samples, too, unless it is told not to.
printf 'gpus 3\n' >"$WORK/gpus"
"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null
for interval in 0 100ms; do
  expect_exit 0 "$WORKER" --collector "$COLLECTOR" llm --model "$WORK/tiny.gguf" --tokens 200 \
    --requests 20 --rate 20 --device-interval "$interval" --device cpu
done
holds "select count(*) = 1 from run r where r.run in (select run from inference)
          and (select count(distinct device) from device_sample s where s.run = r.run) = 3" ||
  fail "a workload's own samples"
expect_exit 2 "$WORKER" watch --device-interval 0
expect_text "$WORK/err" "leaves nothing to do"
expect_exit 2 "$WORKER" watch --device-interval 5ms
expect_text "$WORK/err" "0 or from 100ms to 1h"

# Where the driver's module is loaded, a run has its version and, of a build with CUDA, CUDA's.
if unshare -rm true 2>/dev/null; then
  "$WORKER" --no-report llm --model "$WORK/tiny.gguf" --device cuda >"$WORK/out" 2>&1 || true
  grep -q 'this build has no cuda back end' "$WORK/out" && cuda="is null" || cuda="glob '[1-9]*.[0-9]'"
  start loaded unshare -rm sh -c 'mount -t tmpfs none /sys/module && mkdir /sys/module/nvidia &&
    echo 580.65.06 >/sys/module/nvidia/version && exec "$@"' - "$WORKER" --collector "$COLLECTOR" watch
  wait_until 20 holds "select count(*) = 1 from v_run where driver = '580.65.06'"
  holds "select cuda $cuda from v_run where driver = '580.65.06'" ||
    fail "not that CUDA: $(ask "select cuda from v_run where driver is not null")"
  stop loaded
  holds "select count(*) = 0 from v_run where driver is null and cuda is not null" ||
    fail "CUDA without a driver"
fi

# A library that is none, or cannot be used: the host alone.
for library in "$WORK/gpus" "$WORK/missing"; do
  : >"$WORK/alone.log"
  INFERSTAT_TEST_NVML=$library start alone "$WORKER" --collector "$COLLECTOR" watch
  wait_until 20 grep -q 'no GPU is found' "$WORK/alone.log"
  stop alone
done
