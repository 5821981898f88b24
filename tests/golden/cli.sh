#!/usr/bin/env bash
# cli.sh MAKE_STORE MAKE_MEASURED: runs every line of cli/cases over a fixed store and compares
# output, messages and exit code with cli/NAME.txt.
#
# After a change that is meant, INFERSTAT_GOLDEN_UPDATE=1 writes the files anew;
# read the difference before committing it.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/lib.sh"

make_store=$1
export TZ=CET-1CEST,M3.5.0,M10.5.0/3 # Central Europe, whatever zone files there are
cd "$WORK" || exit
"$make_store" store.db
printf 'This is no store.\n' >text
cp store.db old.db
sqlite3 old.db "PRAGMA user_version = 5"
cp store.db failed.db
sqlite3 failed.db "UPDATE inference SET finish = 3, error = 'connect to 10.0.0.' || id || ':5571: '
  || iif(id = 4, 'timed out', 'refused') WHERE run = 1; UPDATE inference SET finish = 3 WHERE id = 5"
cp store.db hosts.db
sqlite3 hosts.db <"$here/insight.sql"
# One cause in three medians; a host that is slow without one; and a device that is warmer.
cp hosts.db cause.db
sqlite3 cause.db "UPDATE inference SET prefill_ns = 60000000, ttft_ns = 61000000,
  e2e_ns = e2e_ns + 10000000 WHERE run = 14;
  UPDATE inference SET decode_ns = decode_ns + 200000000, e2e_ns = e2e_ns + 200000000 WHERE run = 12;
  WITH RECURSIVE sample(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM sample WHERE number < 20)
  INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device, temperature_celsius)
  SELECT run, 1, number, started_ns + number * 10000000000, received_ns, 6, iif(run = 14, 75, 63)
  FROM run, sample WHERE run > 10"
"$2" measured.db
sqlite3 measured.db <"$here/measured.sql"
for host in ordinary again slow few upgraded; do
  "$INFERSTAT" --db measured.db baseline save "$host" --host "$host" >/dev/null
done
# When they were saved is no more fixed than the day.
sqlite3 measured.db "UPDATE baseline SET created_ns = 1774785600000000000"
# A model without tokens, and the same compressed.
cp measured.db models.db
sqlite3 models.db "INSERT INTO name(text) VALUES('ds-cnn'), ('ds-cnn-int8');
  UPDATE inference SET prompt_tokens = NULL, cached_prompt_tokens = NULL, generated_tokens = NULL,
    prefill_ns = NULL, ttft_ns = NULL, decode_ns = NULL, itl_p99_ns = NULL, items = 8
    WHERE run IN (1, 3);
  UPDATE inference SET model = (SELECT id FROM name WHERE text = 'ds-cnn') WHERE run = 3;
  UPDATE inference SET model = (SELECT id FROM name WHERE text = 'ds-cnn-int8') WHERE run = 1;
  UPDATE model SET name = (SELECT id FROM name WHERE text = 'ds-cnn'), quantisation = 'f32',
    parameters = 22604, file_bytes = 92416 WHERE run = 3;
  UPDATE model SET name = (SELECT id FROM name WHERE text = 'ds-cnn-int8'), quantisation = 'int8',
    parameters = 22604, file_bytes = 30720 WHERE run = 1"
cp measured.db expired.db
sqlite3 expired.db "INSERT INTO expiry SELECT 6, max(started_ns) - 153000000000 FROM inference;
  DELETE FROM inference WHERE started_ns < (SELECT until_ns FROM expiry);
  INSERT OR REPLACE INTO ledger(run, kind, stored, expired) SELECT run, 6, 1, 1 FROM run"
cp store.db broken.db
sqlite3 broken.db "DELETE FROM inference WHERE number = 10; UPDATE range SET last = 14 WHERE
  run = 1; UPDATE stream SET produced = 20 WHERE run = 2; DELETE FROM operation WHERE run = 2;
  INSERT INTO process_sample SELECT NULL, 9, stream, number, started_ns, received_ns, cpu_ratio,
  host_memory_bytes, device_memory_bytes, NULL, NULL, NULL FROM process_sample"
# Requests of models that make no tokens, and in mixed.db one of a model that makes them.
cp store.db items.db
sqlite3 items.db "UPDATE inference SET prompt_tokens = NULL, cached_prompt_tokens = NULL,
  generated_tokens = NULL, prefill_ns = NULL, ttft_ns = NULL, decode_ns = NULL, itl_max_ns = NULL,
  itl_p99_ns = NULL, items = 32, queue_ns = 1000,
  e2e_ns = 1000000 + request * 10000; DELETE FROM itl"
cp items.db mixed.db
sqlite3 mixed.db "UPDATE inference SET items = NULL, prompt_tokens = 5, cached_prompt_tokens = 0,
  generated_tokens = 11, prefill_ns = 500000, ttft_ns = 600000, decode_ns = 400000 WHERE run = 3"
# Two samples: of the requests of two models, and of one's alone.
cp store.db requests.db
sqlite3 requests.db "DELETE FROM process_sample;
  INSERT INTO process_sample(run, stream, number, started_ns, received_ns, cpu_ratio,
  host_memory_bytes, running_requests, waiting_requests, model)
  SELECT 3, 0, n, 1774751400000000000 + s * 1000000000, 1774751403000000000, 0.5, 89128960, r, w, m
  FROM (SELECT column1 n, column2 s, column3 r, column4 w, column5 m FROM (VALUES
  (10, 1, 3, 1, 3), (11, 1, 2, 0, 4), (12, 1, 5, 1, NULL), (13, 2, 1, 0, 3), (14, 2, 1, 0, NULL)))"
# Samples of a host and two devices, one of them throttled; processes and events, with hostile names.
cp store.db health.db
sqlite3 health.db <"$here/health.sql"
cp health.db lasting.db
cp health.db many.db
sqlite3 many.db "WITH RECURSIVE event(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM event WHERE n < 25)
  INSERT INTO event(run, stream, number, started_ns, received_ns, event, device, duration_ns, code)
  SELECT 3, 0, 200 + n, 1774751401000000000 + n, 1774751402000000000,
    31, 30, 0, n FROM event" || exit
sqlite3 lasting.db "DELETE FROM event WHERE number > 124; UPDATE event SET started_ns = 1774744380000000000"
"$INFERSTAT" --db store.db export --bundle bundle.db >/dev/null
cp store.db alerts.db
sqlite3 alerts.db <"$here/alerts.sql"
printf '# rules\nalert long: avg e2e_ns by host over 1d when max > 1ns\ndisable disk_full\n' >rules
printf 'alert bad: avg ttft_ns over 5m when p96 > 3s\n' >wrong

# What differs between machines and moments: the file's size, the time of asking.
masked() {
  sed -E -e 's/^(source      (store|expired|items|mixed|health)\.db \().*\)$/\1SIZE)/' \
    -e 's/"(store_bytes|now_ns|round_trip_ns)": [0-9]+/"\1": 0/g' \
    -e 's/^(round trip|now|store bytes)( +).*$/\1\2MASKED/' \
    -e 's/this program reads [0-9]+/this program reads N/' \
    -e 's/"version": "[^"]*"/"version": "VERSION"/' -e 's/^(version +).*$/\1VERSION/'
}

failed=0
while read -r name code line; do
  case $name in '' | '#'*) continue ;; esac
  got=0
  # The words of a case hold no blanks but those in single quotes.
  eval "set -- $line"
  "$INFERSTAT" "$@" >out 2>err </dev/null || got=$?
  {
    printf '$ inferstat%s\n' "${line:+ $line}"
    cat out err
    printf '[exit %s]\n' "$got"
  } | masked >seen
  [ "$got" -eq "$code" ] || {
    printf '%s: exit code %s, not %s\n' "$name" "$got" "$code"
    cat seen
    failed=1
  }
  if [ -n "${INFERSTAT_GOLDEN_UPDATE-}" ]; then
    cp seen "$here/cli/$name.txt"
  elif ! diff -u "$here/cli/$name.txt" seen; then
    printf '%s: differs from tests/golden/cli/%s.txt\n' "$name" "$name"
    failed=1
  fi
done <"$here/cli/cases"

# On a terminal of 80 columns a table keeps the columns that people look at.
narrow() {
  local shown
  command -v script >/dev/null || {
    printf '%s: skipped: no script(1)\n' "$1"
    return 0
  }
  shown=$(script -qec "stty cols 80; '$INFERSTAT' --db $1 || true" /dev/null </dev/null | tr -s ' \r' ' ')
  grep -qx "$2" <<<"$shown" || {
    printf '%s: not the columns %s:\n%s\n' "$1" "$2" "$shown"
    failed=1
  }
}
narrow 'alerts.db alerts' 'id state rule model host device value threshold '
narrow 'measured.db compare ordinary slow' 'model device metric change verdict '
narrow 'models.db compare --models ds-cnn,ds-cnn-int8' 'model metric before after change verdict '
# Where a terminal shows progress, an audit comes in four pages, which have the same rows.
if command -v script >/dev/null; then
  "$INFERSTAT" --db hosts.db audit --csv >whole 2>err || true
  script -qec "'$INFERSTAT' --db hosts.db audit --csv >pages" /dev/null </dev/null >shown || true
  diff whole pages && grep -q 'audit: 4 of 7 runs do not balance' shown || failed=1
fi
exit "$failed"
