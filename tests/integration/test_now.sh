#!/usr/bin/env bash
# The states of `inferstat now`: engines that are killed, stopped, closed and started again, over
# ipc and TCP, and a collector that restarts.
. "$(dirname "$0")/../support/lib.sh"

port=$(PYTHONPATH=$(dirname "$0")/../support python3 -c 'from programs import free_ports
print(free_ports(4))')
export INFERSTAT_COLLECTOR=$COLLECTOR
start_both() { start_collector --listen "tcp://127.0.0.1:$port"; }

# engine NAME [ADDRESS]: five requests a second of a host NAME, whose runs no other host replays.
engine() {
  [ -d "$WORK/run/$1" ] || mkdir -m 0700 "$WORK/run/$1"
  start "$1" env INFERSTAT_HOST="$1" INFERSTAT_COLLECTOR="${2-$COLLECTOR}" \
    INFERSTAT_RUN_DIR="$WORK/run/$1" INFERSTAT_SPOOL="$WORK/spool-$1" \
    "$FAULT_ENGINE" --shared "$WORK/$1.shared" --threads 1 --mix inferences --rate 5
}

# is NAME STATE: whether the models of the host have that state and no other.
is() {
  [ "$("$INFERSTAT" now --host "$1" --csv | cut -d, -f3 | sort -u | grep -v '^state$')" = "$2" ]
}

seconds() { awk '{print int($1)}' /proc/uptime; }

start_both
"$WORKER" make-model --shape tiny --type f32 "$WORK/tiny.gguf" >"$WORK/make.log" 2>&1
start loading env INFERSTAT_HOST=loading INFERSTAT_TEST_STAGE_DELAY=read_header:4000 \
  "$WORKER" llm --model "$WORK/tiny.gguf" --prompt a --tokens 2 --requests 1
for name in killed closed stopped steady; do engine "$name"; done
engine cut "tcp://127.0.0.1:$port"
for name in killed cut closed stopped steady; do wait_until 20 is "$name" ok; done

wait_until 5 is loading loading
expect_exit 0 "$INFERSTAT" now --host loading
expect_text "$WORK/out" "load read_header"

# Killed: down within 5 s; stopped: silent after 10 s; closed: ended.
began=$(seconds)
kill -STOP "${started_pids[stopped]}"
stop killed KILL
stop cut KILL
stop closed
wait_until 2 is closed ended
wait_until 5 is killed down
wait_until 5 is cut down
[ $(($(seconds) - began)) -le 6 ] || fail "down was found after $(($(seconds) - began)) s"
expect_exit 0 "$INFERSTAT" now --json --host cut
python3 -c 'import json, sys
row = json.load(open(sys.argv[1]))["rows"][0]
assert row["requests"] is None and "without closing" in row["reason"], row
assert 0 < row["as_of_ns"] - row["since_ns"] < 8e9, row' "$WORK/out" || fail "not what down is"
is stopped ok || fail "it is silent too soon"

# Replaced, it is down no more; nor does what it left, sent by its successor, make it so.
engine killed
wait_until 5 is killed ok
wait_until 10 is stopped silent
expect_exit 0 "$INFERSTAT" now
[ "$(sed -n 2p "$WORK/out" | cut -c 1-4)" = down ] || fail "what is down is not first"
is loading ended || fail "the worker is not ended"
kill -CONT "${started_pids[stopped]}"
wait_until 5 is stopped ok
is killed ok || fail "it is not ok any more"
is cut down || fail "it is not down any more"

# A restarted collector marks no process for 10 s, and remembers those that are down.
stop collector
sleep 1
start_both
for _ in 1 2 3 4 5 6 7 8; do
  for name in killed stopped steady; do
    if is "$name" silent || is "$name" down; then fail "$name is marked after a restart"; fi
  done
  sleep 0.25
done
wait_until 5 is steady ok
is cut down || fail "the restart forgot who is down"

# From the file alone, as of its last message.
for name in killed stopped steady; do stop "$name"; done
stop collector
expect_exit 0 "$INFERSTAT" --db "$DB" now
expect_text "$WORK/out" "the last message in this file"
[ "$(cut -c 1-5 "$WORK/out" | grep -c '^ended')" -eq 5 ] || fail "not five ended"
