#!/usr/bin/env bash
# Queries as text: the same answers as from the commands, by name, exported, marked
# where they cannot be read; times in zones whose clocks jump; and names that would do
# something to a terminal or a database shown as text by every command.
#
# test_query.sh MAKE_STORE
. "$(dirname "$0")/../support/lib.sh"

unset XDG_CONFIG_HOME
export TZ=CET-1CEST,M3.5.0,M10.5.0/3 # Central Europe, whatever zone files there are
"$1" "$DB"

ask() {
  "$INFERSTAT" --db "$DB" "$@"
}

# ---- The same as the command --------------------------------------------------------

# same WORDS TEXT: what the words of a command line print, the text prints too, but for the option
# that shows more.
same() {
  local format words
  read -ra words <<<"$1"
  for format in "" --json --csv; do
    # shellcheck disable=SC2086 # no word, or one
    expect_exit 0 ask "${words[@]}" $format
    sed 's/; --limit 0 shows all)$/; limit N shows more)/' "$WORK/out" >"$WORK/command"
    # shellcheck disable=SC2086
    expect_exit 0 ask query "$2" $format
    cmp "$WORK/command" "$WORK/out" || fail "query \"$2\" is not $1 $format"
  done
}

same "avg ttft_ns" "avg ttft_ns"
same "avg inference.ttft_ns --by model,host --limit 1" "avg inference.ttft_ns by model, host limit 1"
same "avg load_stage.duration_ns --by stage --stage read_header" \
  "avg load_stage.duration_ns by stage where stage=read_header"
same "avg ttft_ns --since 2026-03-29T00:00:00Z --until 2026-03-29T02:00:00Z --model stories-15M" \
  "avg ttft_ns where model=stories-15M since 2026-03-29T00:00:00Z until 2026-03-29T02:00:00Z"
same "summary" "summary"
same "summary --host gpu-host-1" "summary where host=gpu-host-1"
same "loads" "loads"
same "loads" "load"
same "inferences --limit 2" "inferences limit 2"
same "inferences --limit 2 --oldest" "inferences oldest limit 2"
same "inferences --run aaaa" "inferences run=aaaa"
same "operations" "operations"
same "pipelines" "pipelines"
same "runs" "runs"
same "devices --since 2026-03-29T00:00:00Z" "health since 2026-03-29T00:00:00Z"
same "audit" "audit"
same "inferences --slowest 3" "slowest limit 3"
same "inferences --slowest 10 --metric ttft_ns --model stories-15M" "slowest ttft_ns model=stories-15M"
same "loads --average" "stages"
same "loads --average --by model --host gpu-host-1" "stages by model where host=gpu-host-1"
for kind in models startups load_stages itls device_samples process_samples; do
  expect_exit 0 ask query "$kind"
  expect_exit 0 ask query "$kind" --json
  python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1]))["rows"])' "$WORK/out" ||
    fail "query $kind --json has no rows"
done
expect_exit 0 ask query overview
expect_text "$WORK/out" "gpu-host-1"

# Where the commands have another exit code, so has the text.
for pair in "fleet:fleet" "now:now" "errors --by model --limit 1:errors by model limit 1" \
  "baseline list:baselines" \
  "compare --against none --host gpu-host-1:compare host=gpu-host-1 against none" \
  "compare --models none,stories-15M --host h --since 1d --force:compare model=stories-15M host=h since 1d force against model=none host=h since 1d" \
  "compare one two --metric ttft_ns --margin 3%:compare two of ttft_ns margin 3% against one"; do
  read -ra words <<<"${pair%%:*}"
  code=0
  ask "${words[@]}" >"$WORK/command" 2>"$WORK/reason" || code=$?
  expect_exit "$code" ask query "${pair#*:}"
  cmp "$WORK/command" "$WORK/out" || fail "query ${pair#*:} prints something else"
  cmp "$WORK/reason" "$WORK/err" || fail "query ${pair#*:} fails for another reason"
done

# A text in several words is one; each step has a row.
expect_exit 0 ask query avg ttft_ns by model limit 1
cp "$WORK/out" "$WORK/command"
expect_exit 0 ask query "avg ttft_ns by model limit 1"
cmp "$WORK/command" "$WORK/out" || fail "words are not joined"
same "avg ttft_ns --step 1h" "avg ttft_ns step 1h"

# ---- What cannot be read ------------------------------------------------------------

# refused TEXT MARKS WHY
refused() {
  expect_exit 2 ask query "$1"
  [ ! -s "$WORK/out" ] || fail "query \"$1\" prints something"
  printf '  %s\n  %s\n' "$1" "$2" >"$WORK/marks"
  head -n 2 "$WORK/err" | cmp - "$WORK/marks" || fail "query \"$1\" is marked elsewhere"
  expect_text "$WORK/err" "inferstat: query: $3"
}

refused "loads where model=日本 typo" \
  "                       ^~~~" 'column 22: unknown word "typo"' # by what a terminal shows
refused "loads since 1h until 2h" \
  "               ^~~~~~~~" 'column 16: the window ends before it begins'
refused "clear" "^~~~~" 'column 1: unknown verb "clear"'
expect_exit 2 ask query $'loads where model=x \e[31mred'
if grep -q $'\e' "$WORK/err"; then fail "an escape in a text reaches the terminal"; fi
expect_text "$WORK/err" '\x1B[31mred'
expect_exit 3 ask query "loads since 2200-01-01"
expect_text "$WORK/err" "the window begins in the future"
expect_exit 3 ask loads --since 2200-01-01 --json
expect_exit 2 ask loads --since 2026-03-30 --until 2026-03-29
expect_exit 2 ask query loads --limit 3

# ---- By name ------------------------------------------------------------------------

expect_exit 3 ask query
mkdir -p "$HOME/.config/inferstat"
cat >"$HOME/.config/inferstat/queries" <<'END'
# what is looked at every day
by-model = avg ttft_ns by model
last     = inferences limit 1
broken   = avg ttft_ns by modle
END
expect_exit 0 ask query by-model
cp "$WORK/out" "$WORK/named"
expect_exit 0 ask avg ttft_ns --by model
cmp "$WORK/named" "$WORK/out" || fail "a name is not its text"
expect_exit 0 "$INFERSTAT" query
expect_text "$WORK/out" "by-model  avg ttft_ns by model"
expect_exit 0 "$INFERSTAT" query --csv
[ "$(sed -n 2p "$WORK/out")" = "by-model,avg ttft_ns by model" ] || fail "names as CSV"
expect_exit 2 ask query broken
expect_text "$WORK/err" 'inferstat: query: broken: column 16: unknown dimension "modle"'
expect_exit 2 ask query by-mode
expect_text "$WORK/err" "did you mean by-model?"
expect_exit 0 ask query loads # a broken text of another name is no matter
expect_exit 0 env XDG_CONFIG_HOME="$HOME/.config" "$INFERSTAT" --db "$DB" query last

# in_file LINE WHY: such a line is told with its number, and the others are read.
in_file() {
  printf '%s\nby-model = avg ttft_ns by model\n' "$1" >"$HOME/.config/inferstat/queries"
  expect_exit 0 ask query by-model
  cmp "$WORK/named" "$WORK/out" || fail "behind \"$1\" a name is not its text"
  expect_text "$WORK/err" "inferstat: WARNING: $HOME/.config/inferstat/queries:1: $2"
}
in_file "summary = loads" '"summary" is a verb of the query language'
in_file "a b = loads" 'invalid name "a b"'
in_file "nonsense" '"nonsense" is no "key = value"'
printf 'x = loads\nx = runs\n' >"$HOME/.config/inferstat/queries"
expect_exit 0 ask query x # the first
expect_text "$WORK/err" 'queries:2: "x" is given twice'
rm "$HOME/.config/inferstat/queries"
mkdir "$HOME/.config/inferstat/queries"
expect_exit 4 ask query x
rmdir "$HOME/.config/inferstat/queries"

# ---- Exported -----------------------------------------------------------------------

expect_exit 0 ask export --query "avg ttft_ns by model,host"
[ "$(wc -l <"$WORK/out")" -eq 2 ] || fail "export --query writes JSON Lines"
expect_exit 0 ask avg ttft_ns --by model,host --csv
cp "$WORK/out" "$WORK/command"
expect_exit 0 ask export --query "avg ttft_ns by model,host" --format csv --output "$WORK/q.csv"
cmp "$WORK/command" "$WORK/q.csv" || fail "export --query is not what avg --csv prints"
expect_text "$WORK/err" "2 rows written"
expect_exit 0 ask inferences --json
cp "$WORK/out" "$WORK/command"
expect_exit 0 ask export --query inferences --json
cmp "$WORK/command" "$WORK/out" || fail "export --query of records is not what is listed"
expect_exit 0 ask export --query "overview" --csv
expect_exit 3 ask export --query "inferences model=nothing"
expect_exit 2 ask export --query "inferences" --model x
expect_exit 2 ask export --query "inferences" load
expect_exit 2 ask export --query "infrences" --output "$WORK/none.csv"
expect_text "$WORK/err" "export: column 1: unknown verb"
[ ! -e "$WORK/none.csv" ] || fail "what cannot be read leaves a file"

# Of events an answer has 1,000; a note says that there are more.
cp "$DB" "$WORK/events.db"
sqlite3 "$WORK/events.db" "INSERT INTO name(id, text) VALUES (90, 'xid');
  WITH RECURSIVE event(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM event WHERE n < 1001)
  INSERT INTO event(run, stream, number, started_ns, received_ns, event, duration_ns, code)
  SELECT 3, 0, 200 + n, 1774751401000000000 + n, 1774751402000000000, 90, 0, n FROM event"
for notes in 1 0; do
  for command in "events --json" "events --csv" "export --query events" "export --query events --csv"; do
    # shellcheck disable=SC2086 # commands with their words
    expect_exit 0 "$INFERSTAT" --db "$WORK/events.db" $command
    [ "$(grep -c gpu-host-1 "$WORK/out")" -eq 1000 ] || fail "$command: not 1,000 events"
    [ "$(grep -c "only the 1,000 newest" "$WORK/err")" -eq "$notes" ] || fail "$command: not $notes notes"
  done
  sqlite3 "$WORK/events.db" "DELETE FROM event WHERE code = 1"
done

# ---- Times and zones ----------------------------------------------------------------

# starts ZONE TIME UNIX_SECONDS [LATEST]: what the time means as --since, and as
# --until where that is another instant.
starts() {
  local since="" until="" latest=${4-$3}
  expect_exit 0 env TZ="$1" "$INFERSTAT" --db "$WORK/zones.db" query "operations since '$2' limit 1 oldest" --csv
  since=$(column started_ns <"$WORK/out")
  expect_exit 0 env TZ="$1" "$INFERSTAT" --db "$WORK/zones.db" operations --until "$2" --limit 1 --csv
  until=$(column started_ns <"$WORK/out")
  [ "$since" = "${3}000000000" ] || fail "$1 --since $2 is ${since%000000000}, not $3"
  [ "$until" = "$((latest - 1800))000000000" ] || fail "$1 --until $2 begins behind ${until%000000000}"
}

column() {
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }'
}

# One operation each half hour of the days on which clocks jump.
cp "$DB" "$WORK/zones.db"
sqlite3 "$WORK/zones.db" "DELETE FROM operation;
  WITH RECURSIVE n(i, t) AS (SELECT 1, 1774735200 UNION ALL SELECT i + 1, t + 1800 FROM n WHERE i < 100)
  INSERT INTO operation(run, stream, number, started_ns, received_ns, operation, duration_ns)
  SELECT 1, 7, i, t * 1000000000, t * 1000000000, 12, 1 FROM n;
  WITH RECURSIVE n(i, t) AS (SELECT 101, 1792879200 UNION ALL SELECT i + 1, t + 1800 FROM n WHERE i < 200)
  INSERT INTO operation(run, stream, number, started_ns, received_ns, operation, duration_ns)
  SELECT 1, 7, i, t * 1000000000, t * 1000000000, 12, 1 FROM n"
berlin=CET-1CEST,M3.5.0,M10.5.0/3
starts $berlin "2026-03-29 01:30" 1774744200            # winter
starts $berlin "2026-03-29 03:00" 1774746000            # summer, half an hour later
starts $berlin "2026-10-25 02:00" 1792886400 1792890000 # comes twice: the first, the last
starts $berlin "2026-10-25T02:30:00+01:00" 1792891800
starts UTC0 "2026-03-29 02:30" 1774751400 # there it is a time as any other
expect_exit 2 ask operations --since "2026-03-29 02:30"
expect_text "$WORK/err" "the clocks skip it"
expect_exit 2 ask operations --until "2026-03-29 02:30"

# ---- Names --------------------------------------------------------------------------

# What names may hold, and no terminal may see: escapes, also in one character, bells,
# line ends, text that runs backwards; and SQL, formats and shell, which are only text.
# Not in the table of what is stored once, but in free texts too.
cp "$DB" "$WORK/hostile.db"
sqlite3 "$WORK/hostile.db" "UPDATE name SET text = char(27) || '[2J' || char(27) || ']0;owned' ||
    char(7, 10, 13, 8, 127, 155, 8238, 65279) || '''); DROP TABLE run; -- %s%n \$(id) \\\"' || id;
  UPDATE run SET last_activity = char(27) || '[31m', worker_version = char(27) || 'c', os = char(155),
    kernel = char(27), cpu = char(27), container = char(27), driver = char(27), cuda = char(27)"
hostile=$(sqlite3 "$WORK/hostile.db" "SELECT text FROM name JOIN run ON run.host = name.id LIMIT 1")

# clean WHAT: nothing but text and line ends on either output.
clean() {
  python3 - "$WORK/out" "$WORK/err" <<'END' || fail "$1: what is no text reaches the terminal"
import sys, unicodedata
for name in sys.argv[1:]:
    text = open(name, encoding="utf-8", newline="").read()
    bad = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")}
    if bad:
        print(name, sorted(map(ascii, bad)), file=sys.stderr)
        sys.exit(1)
END
}

"$INFERSTAT" --help >"$WORK/help"
commands=$(sed -n '1,/^Options/s/^  \([a-z-]\{1,\}\) .*/\1/p' "$WORK/help")
[ "$(wc -w <<<"$commands")" -gt 15 ] || fail "the help lists no commands"
seen=0
for command in $commands; do
  "$INFERSTAT" "$command" --help >"$WORK/help"
  grep -q -- '--db FILE' "$WORK/help" || continue
  words=("$command")
  case $command in
  top | tail | clear | backup | import) continue ;; # a terminal, no end, no names
  avg) words+=(load_stage.duration_ns --by "model,host,device,operation,stage") ;;
  query) words+=(overview) ;;
  compare) words+=(--model "$hostile") ;;
  baseline) words+=(list) ;;
  esac
  for format in "" --json --line --markdown; do
    [ -z "$format" ] || grep -q -- "$format" "$WORK/help" || continue
    # shellcheck disable=SC2086 # no word, or one
    "$INFERSTAT" --db "$WORK/hostile.db" "${words[@]}" $format >"$WORK/out" 2>"$WORK/err" || true
    clean "$command $format"
    seen=$((seen + 1))
  done
done
[ "$seen" -gt 15 ] || fail "only $seen outputs were looked at"
expect_exit 0 "$INFERSTAT" --db "$WORK/hostile.db" runs --host "$hostile"
clean "runs --host"
expect_text "$WORK/out" '\x1B[2J'
# shellcheck disable=SC2016 # as it stands in the name
expect_text "$WORK/out" 'DROP TABLE run; -- %s%n $(id)'
[ "$(sqlite3 "$WORK/hostile.db" 'SELECT count(*) FROM run')" -eq 3 ] || fail "the runs are gone"
for command in loads inferences summary; do # in messages too
  "$INFERSTAT" --db "$WORK/hostile.db" $command --model "$hostile" >"$WORK/out" 2>"$WORK/err" || true
  clean "$command --model"
done
for kind in models startups load_stages itls device_samples process_samples; do
  expect_exit 0 "$INFERSTAT" --db "$WORK/hostile.db" query "$kind"
  clean "query $kind"
done
expect_exit 0 "$INFERSTAT" --db "$WORK/hostile.db" export
clean export
# A CSV is for machines: it holds the name as it is.
expect_exit 0 "$INFERSTAT" --db "$WORK/hostile.db" export run --csv
python3 - "$WORK/out" "$hostile" <<'END' || fail "a name is another one in a CSV"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8")))
sys.exit(sys.argv[2] not in [row["host"] for row in rows])
END
