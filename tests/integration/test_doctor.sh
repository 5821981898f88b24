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
found 0 ok store "can be read" --db "$DB"
expect_exit 0 "$INFERSTAT" doctor
! grep -q '  error' "$WORK/out" || fail "a healthy host has errors"

# How fast the store grows is known only while it has all its records.
"$WORKER" --collector "$COLLECTOR" gemm --sizes 64 --trials 3 --warmups 1 >/dev/null 2>&1 || fail "gemm failed"
sqlite3 "$DB" ".timeout 5000" "UPDATE run SET started_ns = started_ns - 2 * 86400000000000"
found 0 ok disk "grows by"
expect_exit 0 "$INFERSTAT" clear --yes
found 0 ok disk "free"
! grep -q "grows by" "$WORK/out" || fail "a store that was cleared grows"

# ---- Troubles -----------------------------------------------------------------------

chmod 770 "${COLLECTOR#ipc://}"
found 1 error folder "may write to the folder"
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

# A full file system of run files, and an NVIDIA device by a library of the tests.
full="mount -t tmpfs -o size=1m full '$WORK/full' && INFERSTAT_RUN_DIR='$WORK/full' exec '$INFERSTAT' doctor"
mkdir -m 700 "$WORK/full"
if unshare -rm true 2>/dev/null; then
  expect_exit 1 unshare -rm bash -c "$full"
  grep -q '^run files *error .*/full: .*free' "$WORK/out" || fail "a full tmpfs is no error: $(cat "$WORK/out")"
fi
nvml=$INFERSTAT_BUILD/tests/support/nvml/libfake_nvml.so
if [ -f "$nvml" ]; then
  printf 'gpus 2\n' >"$WORK/devices"
  export INFERSTAT_TEST_NVML=$nvml INFERSTAT_TEST_NVML_SCRIPT=$WORK/devices
  found 1 ok driver ", 2 devices" --db "$WORK/none.db"
fi
