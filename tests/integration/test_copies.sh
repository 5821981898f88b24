#!/usr/bin/env bash
# backup, export --bundle and import over real collectors: while records come in, with
# the programs killed in the middle of each, and with files that are none of it.
# shellcheck disable=SC2119,SC2154  # a collector needs no more options; lib.sh has started_pids
. "$(dirname "$0")/../support/lib.sh"

export INFERSTAT_COLLECTOR=$COLLECTOR

other=$WORK/other.db
mkdir -m 0750 "$WORK/o"
start_other() {
  start other "$INFERSTATD" --listen "ipc://$WORK/o" --db "$other"
  wait_until 20 "$INFERSTAT" --collector "ipc://$WORK/o" ping
}
ask_other() { "$INFERSTAT" --collector "ipc://$WORK/o" "$@"; }

# digest FILE: what the records of a store say, whatever ids they have.
digest() {
  local kind
  for kind in device model startup load load_stage inference itl operation pipeline device_sample \
    process_sample host_sample device_process event; do
    sqlite3 "$1" "SELECT * FROM v_$kind ORDER BY run, stream, number"
  done | sha256sum
}
# Who follows the records of the other store, until there were 600.
start_tail() {
  "$INFERSTAT" --collector "ipc://$WORK/o" tail inference --limit 600 --json >"$WORK/tail.out" 2>"$WORK/tail.err" &
  started_pids[tail]=$!
}
count() { sqlite3 -readonly "$1" "SELECT count(*) FROM inference"; }
quiet_audit() { "$INFERSTAT" --db "$1" audit >"$WORK/audit" 2>&1 || fail "$1: $(cat "$WORK/audit")"; }

# ---- While records come in -----------------------------------------------------------------

start_collector
"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null 2>&1
start worker "$WORKER" llm --model "$WORK/tiny.gguf" --requests 600 --rate 300 --tokens 4
wait_until 20 has_rows inference 20
for i in 1 2 3; do
  expect_exit 0 "$INFERSTAT" backup "$WORK/live-$i.db"
  grep -q 'checked, in' "$WORK/out" || fail "backup: $(cat "$WORK/out")"
  quiet_audit "$WORK/live-$i.db"
  expect_exit 0 "$INFERSTAT" export --bundle "$WORK/live-bundle-$i.db" --since 1h
  quiet_audit "$WORK/live-bundle-$i.db"
done
[ "$(count "$WORK/live-1.db")" -le "$(count "$WORK/live-3.db")" ] || fail "a later backup has less"
[ "$(stat -c %a "$WORK/live-1.db")" = 600 ] || fail "a backup that others may read"
wait_ended worker 60
all_closed() { [ "$(sqlite3 -readonly "$DB" 'select count(*) from run where "end" <> 1')" -eq 0 ]; }
wait_until 20 all_closed

# A relative path is this folder's; what is there is not replaced; only its owner may.
(cd "$WORK" && "$INFERSTAT" backup --json here.db >out.json) || fail "a relative path"
python3 -c 'import json, sys
row = json.load(open(sys.argv[1]))
assert row["path"] == sys.argv[2], row
assert row["inference"] == 600 and row["runs"] == 1 and row["left_out"] == 0, row' \
  "$WORK/out.json" "$WORK/here.db"
expect_exit 4 "$INFERSTAT" backup "$WORK/here.db"
expect_text "$WORK/err" "already exists"
expect_exit 4 "$INFERSTAT" backup "$WORK/no/folder/x.db"
expect_exit 2 "$INFERSTAT" backup
expect_exit 2 "$INFERSTAT" export --bundle "$WORK/x.db" --csv inference
expect_exit 3 "$INFERSTAT" export --bundle "$WORK/x.db" --host nowhere
expect_exit 3 "$INFERSTAT" export --bundle "$WORK/x.db" --model nothing
expect_exit 3 "$INFERSTAT" export --bundle "$WORK/x.db" --device none --since 1h
[ ! -e "$WORK/x.db" ] || fail "a bundle of nothing"
expect_exit 0 "$INFERSTAT" --db "$WORK/here.db" backup "$WORK/copy-of-copy.db"
[ "$(digest "$WORK/here.db")" = "$(digest "$WORK/copy-of-copy.db")" ] || fail "copies differ"

# ---- Into another store, and again --------------------------------------------------------

expect_exit 0 "$INFERSTAT" export --bundle "$WORK/all.db" --since 1h
start_other
start_tail
start worker "$WORKER" --collector "ipc://$WORK/o" llm --model "$WORK/tiny.gguf" --requests 200 \
  --rate 50 --tokens 4
wait_until 20 test -s "$WORK/tail.out" # it follows: what comes from here on it sees
expect_exit 0 ask_other import "$WORK/all.db"
expect_text "$WORK/out" "records of 1 run imported"
wait_ended tail 60 # who follows the records sees those that are imported
expect_exit 0 ask_other import "$WORK/all.db"
expect_text "$WORK/out" "0 records of 0 runs imported; 1 run already exists"
wait_ended worker 60
expect_exit 0 ask_other audit

# Baselines come with a backup, where their names are free.
expect_exit 0 "$INFERSTAT" baseline save june
expect_exit 0 "$INFERSTAT" backup "$WORK/with-baseline.db"
expect_exit 0 ask_other import "$WORK/with-baseline.db"
expect_text "$WORK/out" "; 1 baseline"
expect_exit 0 ask_other baseline list
expect_text "$WORK/out" "june"
expect_exit 0 ask_other import "$WORK/with-baseline.db"
expect_text "$WORK/out" "1 baseline already exists"
expect_exit 0 ask_other baseline save june --force
expect_exit 0 ask_other import "$WORK/with-baseline.db"
expect_text "$WORK/err" "june: this store has another of that name"
# A bundle has those that are of nothing else.
model=$(sqlite3 "$WORK/all.db" 'select n.text from inference i join name n on n.id = i.model limit 1')
expect_exit 0 "$INFERSTAT" baseline save july --model "$model"
expect_exit 0 "$INFERSTAT" export --bundle "$WORK/named.db" --model "$model"
expect_text "$WORK/out" "; 1 baseline;"
expect_text "$WORK/err" "1 baseline is left out"
expect_exit 0 "$INFERSTAT" --db "$WORK/named.db" baseline list
expect_text "$WORK/out" "july"
for what in "avg ttft_ns" "avg tokens_per_second --by model"; do
  # shellcheck disable=SC2086  # words
  for of in "$INFERSTAT --db $WORK/all.db" "$INFERSTAT --collector ipc://$WORK/o"; do
    $of $what --run "$(sqlite3 "$WORK/all.db" 'select uuid from run')" --csv | cut -d, -f1-12
  done >"$WORK/both"
  [ "$(sort -u "$WORK/both" | wc -l)" -eq 2 ] || fail "$what: $(cat "$WORK/both")"
done

# What is not a bundle.
printf 'no bundle at all, however long one looks at it: %0200d' 0 >"$WORK/text"
expect_exit 4 ask_other import "$WORK/text"
expect_exit 4 ask_other import "$WORK/missing"
expect_exit 2 ask_other import "$other"
expect_exit 0 ask_other audit
stop other

# ---- What llama-bench says ----------------------------------------------------------------

python3 - "$WORK" <<'END'
import json, sys
base = {"build_commit": "8cf427ff", "build_number": 5163, "cpu_info": "a CPU", "gpu_info": "a GPU",
        "model_filename": "models/some-Q4_K_M.gguf", "model_type": "qwen2 7B Q4_K - Medium",
        "model_size": 4677120000, "model_n_params": 7615616512, "n_threads": 8, "n_gpu_layers": -1}
def result(prompt, gen, samples, time):
    return dict(base, n_prompt=prompt, n_gen=gen, test_time=time, samples_ns=samples)
few = [result(512, 0, [74601900, 71632900, 71745200, 71952700, 70745500], "2025-04-24T11:58:50Z"),
       result(0, 128, [1075361300, 1065089400, 1071761200, 1081934900, 1089692600], "2025-04-24T11:58:51Z")]
json.dump(few, open(sys.argv[1] + "/few.json", "w"), indent=1)
with open(sys.argv[1] + "/few.jsonl", "w") as out:
    out.write("".join(json.dumps(one) + "\n" for one in few))
many = [result(0, 16, [1000000 + 7 * i % 100003 for i in range(25000)], "2025-04-2%dT00:00:00Z" % day)
        for day in range(4)]
json.dump(many, open(sys.argv[1] + "/many.json", "w"))
open(sys.argv[1] + "/broken.json", "w").write(json.dumps([dict(few[0], test_time="noon")]))
END
expect_exit 0 "$INFERSTAT" import "$WORK/few.json"
expect_text "$WORK/out" "12 records of 2 runs imported"
expect_text "$WORK/err" "host_memory_bytes of these records is 0"
expect_exit 0 "$INFERSTAT" import "$WORK/few.jsonl"
expect_text "$WORK/out" "0 records of 0 runs imported; 2 runs already exist"
expect_exit 0 "$INFERSTAT" audit
expect_exit 0 "$INFERSTAT" avg tokens_per_second --host llama-bench --json
python3 -c 'import json, sys
row = json.load(open(sys.argv[1]))["rows"][0]
assert row["count"] == 5 and abs(row["mean"] - 118.881588) < 1e-5, row' "$WORK/out"
expect_exit 0 "$INFERSTAT" avg prefill_tokens_per_second --host llama-bench --json
python3 -c 'import json, sys
row = json.load(open(sys.argv[1]))["rows"][0]
assert row["count"] == 5 and abs(row["mean"] - 7100.002165) < 1e-5, row' "$WORK/out"
expect_exit 2 "$INFERSTAT" import "$WORK/broken.json"
printf '[]\n' >"$WORK/empty.json"
expect_exit 3 "$INFERSTAT" import "$WORK/empty.json"
expect_text "$WORK/err" "empty.json: no results in it"
! ls -d "${TMPDIR:-/tmp}"/inferstat-import-*/results.db 2>/dev/null || fail "something is left"

# ---- Killed in the middle -----------------------------------------------------------------

big=$WORK/big.db
start maker "$INFERSTATD" --listen "ipc://$WORK/o" --db "$big"
wait_until 20 ask_other ping
stop maker
expect_exit 0 "$INFERSTAT" --db "$big" import "$WORK/many.json"
[ "$(count "$big")" -eq 100000 ] || fail "not all of it"
whole=$(digest "$big")
quiet_audit "$big"

# begun FILE: whether a copy to it is under way.
begun() { [ -s "$1.inferstat-partial" ] || [ -e "$1" ]; }

# cut_short NAME FILE COMMAND...: kills the program NAME while COMMAND makes FILE, which
# is there whole then or not at all; the same again makes it.
cut_short() {
  local name=$1 file=$2
  shift 2
  start copier "$@"
  wait_until 60 begun "$file"
  kill -KILL "${started_pids[$name]}" 2>/dev/null || true # it may have ended by itself
  wait "${started_pids[$name]}" 2>/dev/null || true
  unset "started_pids[$name]"
  if [ -e "$file" ]; then quiet_audit "$file"; fi
}

cut_short copier "$WORK/cut.db" "$INFERSTAT" --db "$big" backup "$WORK/cut.db"
rm -f "$WORK/cut.db"
expect_exit 0 "$INFERSTAT" --db "$big" backup "$WORK/cut.db"
[ "$(digest "$WORK/cut.db")" = "$whole" ] || fail "the backup differs"
cut_short copier "$WORK/cut-bundle.db" "$INFERSTAT" --db "$big" export --bundle "$WORK/cut-bundle.db"
rm -f "$WORK/cut-bundle.db"
expect_exit 0 "$INFERSTAT" --db "$big" export --bundle "$WORK/cut-bundle.db"
[ "$(digest "$WORK/cut-bundle.db")" = "$whole" ] || fail "the bundle differs"
[ -z "$(find "$WORK" -name '*partial*')" ] || fail "something is left of a copy"

# The collector's own.
start other "$INFERSTATD" --listen "ipc://$WORK/o" --db "$big"
wait_until 20 ask_other ping
cut_short other "$WORK/cut-other.db" "$INFERSTAT" --collector "ipc://$WORK/o" backup "$WORK/cut-other.db"
kill -KILL "${started_pids[copier]}" 2>/dev/null || true
wait "${started_pids[copier]}" 2>/dev/null || true
unset "started_pids[copier]"
rm -f "$WORK/cut-other.db"
start other "$INFERSTATD" --listen "ipc://$WORK/o" --db "$big"
wait_until 20 ask_other ping
expect_exit 0 ask_other backup "$WORK/cut-other.db"
[ "$(digest "$WORK/cut-other.db")" = "$whole" ] || fail "the collector's backup differs"
stop other

# An import: what came stays, its books are right, and doing it again completes it.
some_are_there() { [ "$(count "$1")" -gt 1000 ]; }
start_other
start importer "$INFERSTAT" --collector "ipc://$WORK/o" import "$big"
wait_until 60 some_are_there "$other"
kill -KILL "${started_pids[other]}" "${started_pids[importer]}"
wait "${started_pids[other]}" "${started_pids[importer]}" 2>/dev/null || true
unset "started_pids[other]" "started_pids[importer]"
quiet_audit "$other"
start_other
expect_exit 0 ask_other import "$big"
expect_exit 0 ask_other audit
stop other
[ "$(count "$other")" -eq 100800 ] || fail "after two imports: $(count "$other")"

# The same into a file.
file=$WORK/file.db
start maker "$INFERSTATD" --listen "ipc://$WORK/o" --db "$file"
wait_until 20 ask_other ping
expect_exit 4 "$INFERSTAT" --db "$file" import "$big" # the collector has it
stop maker
start importer "$INFERSTAT" --db "$file" import "$big"
wait_until 60 some_are_there "$file"
kill -KILL "${started_pids[importer]}"
wait "${started_pids[importer]}" 2>/dev/null || true
unset "started_pids[importer]"
quiet_audit "$file"
expect_exit 0 "$INFERSTAT" --db "$file" import "$big"
quiet_audit "$file"
[ "$(digest "$file")" = "$whole" ] || fail "the completed import differs"
stop collector
