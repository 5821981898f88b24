#!/usr/bin/env bash
# doctor: a healthy host and collector, and each trouble planted is found, with what to do.
. "$(dirname "$0")/../support/lib.sh"

export INFERSTAT_COLLECTOR=$COLLECTOR XDG_CONFIG_HOME=$WORK/config
unset INFERSTAT_KEY INFERSTAT_SERVER_KEY

# found CODE STATE CHECK TEXT WORDS...: with these words it exits with the code and has such a line
# of JSON, with advice unless all is well.
found() {
  local code=$1 state=$2 check=$3 text=$4
  expect_exit "$code" "$INFERSTAT" "${@:5}" doctor --json
  python3 - "$WORK/out" "$state" "$check" "$text" <<'END' || fail "no $state of $check: $text: $(cat "$WORK/out")"
import json, sys
path, state, check, text = sys.argv[1:]
rows = json.load(open(path))["rows"]
sys.exit(not any(row["check"] == check and row["state"] == state and text in row["found"]
                 and (row["todo"] is None) == (state == "ok") for row in rows))
END
}

# ---- Without a collector ------------------------------------------------------------

found 1 error folder "there is none" --collector "ipc://$WORK/none"
found 1 error socket "/query: there is none"
found 1 error collector "nothing listens there"
found 1 error address "http://x" --collector http://x
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
found 1 error collector "nothing listens there" --collector "tcp://127.0.0.1:$port"
found 1 error key "there is none" --collector tcp://192.0.2.1:5571 --timeout 100ms
"$INFERSTAT" keygen >/dev/null
found 1 ok key "may be used"
chmod 644 "$XDG_CONFIG_HOME/inferstat/key"
found 1 error key "others may read" --collector tcp://192.0.2.1:5571 --timeout 100ms
chmod 600 "$XDG_CONFIG_HOME/inferstat/key"

# ---- A healthy one ------------------------------------------------------------------

start_collector --log-level info
found 0 ok collector "answers, version"
found 0 ok folder "mode"
found 0 ok clocks "within 1 s"
found 0 ok disk "free"
found 0 ok "open files" ""
case $(sed -n 's/^CMAKE_BUILD_TYPE:STRING=//p' "$INFERSTAT_BUILD/CMakeCache.txt")-$INFERSTAT_SANITIZE in
RelWithDebInfo-) found 0 ok build "RelWithDebInfo" ;;
*-?*) found 0 warning build "-fsanitize" ;;
Debug-) found 0 warning build "Debug" ;;
esac
found 0 ok store "can be read" --db "$DB"
expect_exit 0 "$INFERSTAT" doctor
! grep -q '  error' "$WORK/out" || fail "a healthy host has errors"
[ "$(grep -c "^spool" "$WORK/out")" -eq 1 ] || fail "not one line of a spool that is not there: $(cat "$WORK/out")"

# How fast the store grows is known only while it has all its records.
"$WORKER" --collector "$COLLECTOR" gemm --sizes 64 --trials 3 --warmups 1 >/dev/null 2>&1 || fail "gemm failed"
sqlite3 "$DB" ".timeout 5000" "UPDATE run SET started_ns = started_ns - 2 * 86400000000000"
found 0 ok disk "grows by"
expect_exit 0 "$INFERSTAT" clear --yes
found 0 ok disk "free"
! grep -q "grows by" "$WORK/out" || fail "a store that was cleared grows"

# The clock of this host is two minutes ahead; then that of one whose engine runs.
if [ -z "$INFERSTAT_SANITIZE" ] && [ -f "$SHIFT_CLOCK" ]; then # a sanitizer must be loaded first
  python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("=q", 120 * 10**9))' >"$WORK/clock"
  shifted=(env LD_PRELOAD="$SHIFT_CLOCK" INFERSTAT_TEST_CLOCK="$WORK/clock")
  expect_exit 0 "${shifted[@]}" "$INFERSTAT" doctor
  grep -q '^clocks *warning *this host is 2m 00s off' "$WORK/out" || fail "no clock ahead: $(cat "$WORK/out")"
  start ahead "${shifted[@]}" "$WORKER" --collector "$COLLECTOR" watch
  is_told() { "$INFERSTAT" doctor | grep -q "^clocks *warning *host .* is 2m .*s off the collector"; }
  wait_until 20 is_told
  stop ahead
fi

# ---- Troubles -----------------------------------------------------------------------

chmod 770 "${COLLECTOR#ipc://}"
found 1 error folder "may write to the folder"
chmod 700 "${COLLECTOR#ipc://}"
if [ "$(id -u)" -eq 0 ] && chmod 711 "$WORK" && setpriv --reuid 65534 --clear-groups "$INFERSTAT" -V >/dev/null; then
  expect_exit 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$INFERSTAT" doctor
  grep -q '^folder *error.*permission denied' "$WORK/out" || fail "denied: $(cat "$WORK/out")"
fi
chmod 750 "${COLLECTOR#ipc://}"
chmod 666 "${COLLECTOR#ipc://}/live"
found 0 warning socket "every user"
rm "${COLLECTOR#ipc://}/live"
found 1 error socket "/live: there is none"
chmod o+w "$DB"
found 0 warning store "every user may change it" --db "$DB"
found 1 error store "no such file" --db "$WORK/none.db"
mkdir -p "$INFERSTAT_SPOOL"
chmod 777 "$INFERSTAT_SPOOL"
found 1 error spool "others may change it"
chmod 700 "$INFERSTAT_SPOOL"
expect_exit 1 bash -c "ulimit -n 256; exec '$INFERSTAT' doctor"
grep -q '^open files *warning' "$WORK/out" || fail "few open files are no warning"
stop collector
sqlite3 "$DB" "PRAGMA user_version = 5"
found 1 error store "its schema is version 5" --db "$DB"

# Records of a run that ended while no collector was there.
expect_exit 0 env INFERSTAT_SPOOL="$WORK/left" "$WORKER" gemm --sizes 64 --trials 3 --warmups 1
found 1 warning spool "of 1 run wait for their collector" --spool "$WORK/left"
expect_text "$WORK/out" "inferstat spool flush sends what dead runs left, or says why it cannot"

# A full file system of run files, and an NVIDIA device by a library of the tests.
full="mount -t tmpfs -o size=1m full '$WORK/full' && INFERSTAT_RUN_DIR='$WORK/full' exec '$INFERSTAT' doctor"
mkdir -m 700 "$WORK/full"
if unshare -rm true 2>/dev/null; then
  expect_exit 1 unshare -rm bash -c "$full"
  grep -q '^run files *error .*/full: .*free' "$WORK/out" || fail "a full tmpfs is no error: $(cat "$WORK/out")"
fi

# A processor's governor, and limits of control groups, in files of the tests.
# in_host STATE CHECK TEXT
in_host() {
  # The process's id is the inner shell's.
  # shellcheck disable=SC2016
  expect_exit 1 unshare -rm bash -c 'cd "$WORK" && mount --bind cpu0 /sys/devices/system/cpu/cpu0 &&
    mount --bind groups /sys/fs/cgroup && mount --bind group "/proc/$$/cgroup" && exec "$INFERSTAT" doctor'
  grep -q "^$2 *$1 *$3" "$WORK/out" || fail "no $1 of $2: $3: $(cat "$WORK/out")"
}
limit() { # MEMORY USED QUOTA PERIODS THROTTLED
  printf '%s\n' "$1" >"$WORK/groups/memory.max"
  printf '%s\n' "$2" >"$WORK/groups/memory.current"
  printf '%s 100000\n' "$3" >"$WORK/groups/cpu.max"
  printf 'nr_periods %s\nnr_throttled %s\n' "$4" "$5" >"$WORK/groups/cpu.stat"
}
if [ -d /sys/devices/system/cpu/cpu0 ] && [ -d /sys/fs/cgroup ] && unshare -rm true 2>/dev/null; then
  mkdir -p "$WORK/cpu0/cpufreq" "$WORK/groups"
  echo "0::/" >"$WORK/group"
  for state in "powersave warning" "performance ok"; do
    echo "${state% *}" >"$WORK/cpu0/cpufreq/scaling_governor"
    limit max 1000000 max 100 0
    in_host "${state#* }" processor "governor ${state% *}"
    in_host ok "control group" "no limit"
  done
  limit 104857600 99614720 150000 1000 100
  in_host warning "memory limit" "95.0 MB of the control group's 100.0 MB"
  in_host warning "processor quota" "1.5 processors; used up in 10.0 %"
  limit 104857600 52428800 150000 1000 10
  in_host ok "memory limit" "50.0 MB"
  in_host ok "processor quota" "1.5 processors; used up in 1.0 %"
fi
nvml=$INFERSTAT_BUILD/tests/support/nvml/libfake_nvml.so
if [ -f "$nvml" ]; then
  printf 'gpus 2\n' >"$WORK/devices"
  export INFERSTAT_TEST_NVML=$nvml INFERSTAT_TEST_NVML_SCRIPT=$WORK/devices
  found 1 ok driver ", 2 devices" --db "$WORK/none.db"
fi
