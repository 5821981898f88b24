#!/usr/bin/env bash
# Keys from the command line: made, known, admitted, refused, replaced and revoked,
# with a real collector that listens over TCP.
. "$(dirname "$0")/../support/lib.sh"

export XDG_CONFIG_HOME=$WORK/config
unset INFERSTAT_KEY INFERSTAT_SERVER_KEY

# ---- Making keys ------------------------------------------------------------------------

expect_exit 0 "$INFERSTAT" keygen
expect_text "$WORK/out" "$WORK/config/inferstat/key"
[ "$(stat -c %a "$WORK/config/inferstat/key")" = 600 ] || fail "a secret key is not the user's alone"
[ "$(stat -c %a "$WORK/config/inferstat")" = 700 ] || fail "the folder is not the user's alone"
own=$WORK/config/inferstat/key.pub
cp "$own" "$WORK/first.pub"
expect_exit 4 "$INFERSTAT" keygen
expect_text "$WORK/err" "already exists and is kept"
cmp "$own" "$WORK/first.pub" || fail "a key was replaced unasked"
expect_exit 0 "$INFERSTAT" keygen --force --json
cmp -s "$own" "$WORK/first.pub" && fail "--force made no new key"
cmp "$own.old" "$WORK/first.pub" || fail "--force does not keep the old key"
python3 -c 'import json, sys
made = json.load(open(sys.argv[1]))
words = open(sys.argv[2]).readline().split()
assert made["public_key"] == words[0] and len(words[0]) == 40, made' "$WORK/out" "$own" || fail "--json"
expect_exit 0 "$INFERSTAT" keygen --server "$WORK/server.key"
expect_text "$WORK/out" "inferstat trust tcp://HOST:PORT '$(cut -d' ' -f1 "$WORK/server.key.pub")'"

expect_exit 0 "$INFERSTATD" --check-config --listen tcp://127.0.0.1:27571 --db "$DB" --key "$WORK/server.key"
[ "$(cat "$WORK/out")" = "inferstatd: the options and files are right: listens on tcp://127.0.0.1:27571, store $DB" ] ||
  fail "--check-config does not say what is right"
expect_exit 2 "$INFERSTATD" --check-config --listen tcp://127.0.0.1:27571 --db "$DB" --key "$WORK/no.key"
[ ! -s "$WORK/out" ] || fail "--check-config says that what is wrong is right"

# ---- A collector that asks for them -------------------------------------------------------

# Ports that are free now, which others may take before the collector does.
free_ports() {
  PYTHONPATH=$(dirname "$0")/../support python3 -c 'from programs import free_ports
print(free_ports(4))'
}
tcp=
mkdir "$WORK/files"
for _ in 1 2 3 4 5 6; do
  port=$(free_ports)
  start collector "$INFERSTATD" --listen "$COLLECTOR" --listen "tcp://127.0.0.1:$port" \
    --db "$DB" --key "$WORK/server.key" --authorized-keys "$WORK/authorized" \
    --files-under "$WORK/files"
  up() { ! running collector || [ -S "$WORK/c/live" ]; }
  wait_until 20 up
  if running collector; then
    tcp=tcp://127.0.0.1:$port
    break
  fi
  wait_ended collector 20 4
done
[ -n "$tcp" ] || fail "no port is free"
ping() { "$INFERSTAT" --collector "$tcp" --timeout 1s ping; }
owner() { "$INFERSTAT" --collector "$COLLECTOR" "$@"; }

expect_exit 3 owner keys
expect_text "$WORK/err" "there are no keys yet"
# Loopback without a known key is spoken to plainly, which this one does not take.
expect_exit 4 "$INFERSTAT" --collector "$tcp" --timeout 500ms ping
expect_text "$WORK/err" "if it wants keys: inferstat keygen and trust here"
expect_exit 2 "$INFERSTAT" trust "$tcp" "too short user@host"
expect_text "$WORK/err" "trust: neither a public key (40 characters, or the line"
expect_exit 0 "$INFERSTAT" trust "$tcp" "$(cat "$WORK/server.key.pub")" # the whole line
expect_text "$WORK/out" "now has that key"
expect_exit 0 "$INFERSTAT" trust "$tcp" "$WORK/server.key.pub"
expect_text "$WORK/out" "has that key already"
[ "$(wc -l <"$WORK/config/inferstat/known_collectors")" -eq 1 ] || fail "a line came twice"

expect_exit 4 ping
expect_text "$WORK/err" "it refuses this key"
expect_text "$WORK/err" "inferstat authorize '$(cut -d' ' -f1 "$own")' --role reader"
expect_text "$WORK/err" "--name NAME; these roles replace those that the key has)"

expect_exit 0 owner authorize "$own" --role reader --name reader.1
expect_text "$WORK/out" "reader.1"
admitted() { ping; }
wait_until 20 admitted
expect_exit 3 "$INFERSTAT" --collector "$tcp" summary
expect_exit 4 "$INFERSTAT" --collector "$tcp" --timeout 2s keys # a reader is no admin
expect_exit 4 "$INFERSTAT" --collector "$tcp" --timeout 2s clear --yes
expect_exit 2 owner authorize "$own" --role reader --name 'not a name'
expect_exit 2 owner authorize "$WORK/first.pub" --role reader --name reader.1 # another key's name
expect_exit 0 owner keys --json
python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert [(row["name"], row["roles"]) for row in rows] == [("reader.1", "reader")], rows' "$WORK/out" || fail "keys --json"

# An admin may do over TCP what the owner may; a replaced key is named.
expect_exit 0 owner authorize "$own" --role admin --name admin.1
expect_exit 0 "$INFERSTAT" --collector "$tcp" --timeout 5s authorize "$WORK/first.pub" \
  --role producer,reader --name gpu07 --replaces "$own"
expect_exit 0 "$INFERSTAT" --collector "$tcp" --timeout 5s keys
expect_text "$WORK/out" "producer,reader"
[ "$(grep -c "no longer" "$WORK/out")" -eq 0 ] || fail "keys: a key that lost no role"
# What a key loses is said.
expect_exit 0 owner authorize "$WORK/first.pub" --role reader --name gpu07 --replaces "$own"
expect_text "$WORK/out" "no longer"
grep -qE "^gpu07 +reader .* producer$" "$WORK/out" || fail "authorize: not the role that is lost"
expect_exit 0 owner authorize "$WORK/first.pub" --role producer,reader --name gpu07

# Over TCP files are only named below one folder, and never replaced.
ln -s "$WORK" "$WORK/files/out"
expect_exit 0 "$INFERSTAT" --collector "$tcp" --timeout 20s backup "$WORK/files/copy.db"
expect_exit 4 "$INFERSTAT" --collector "$tcp" --timeout 20s backup "$WORK/files/copy.db"
for path in "$WORK/copy.db" "$WORK/files/../copy.db" "$WORK/files/out/copy.db" \
  "$WORK/files/no/copy.db" "$WORK/filesystem.db"; do
  expect_exit 4 "$INFERSTAT" --collector "$tcp" --timeout 20s backup "$path"
  expect_text "$WORK/err" "files are only named below $WORK/files"
done
expect_exit 4 "$INFERSTAT" --collector "$tcp" --timeout 20s import /etc/passwd
expect_text "$WORK/err" "files are only named below"
[ ! -e "$WORK/copy.db" ] || fail "a copy elsewhere"

# ---- Reporting with a key ---------------------------------------------------------------------

"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null 2>&1
report() { # with the key made first, which is gpu07's now
  "$WORKER" --collector "$tcp" --key "$WORK/config/inferstat/key.old" llm --model "$WORK/tiny.gguf" \
    --requests 3 --tokens 4 >/dev/null 2>"$WORK/worker.log" || fail "the worker failed"
}
report
wait_until 20 has_rows inference 3

# Records that come in are seen with a key; the subscription may take a moment.
start tail "$INFERSTAT" --collector "$tcp" tail inference --json
seen() { [ "$(wc -l <"$WORK/tail.log")" -gt "$1" ]; }
seen_more() { # COUNT
  for _ in 1 2 3 4 5 6 7 8; do
    report
    for _ in 1 2 3 4; do
      ! seen "$1" || return 0
      sleep 0.25
    done
  done
  fail "live records do not come"
}
seen_more 0

# ---- Revoking ------------------------------------------------------------------------------------

expect_exit 3 owner revoke nobody
expect_exit 0 owner revoke admin.1
grep -qE '^revoked admin\.1 \(.{8}\.\.\.\)$' "$WORK/out" || fail "it does not say what was revoked"
[ "$(wc -l <"$WORK/out")" -eq 1 ] || fail "what was revoked is shown as a list"
refused() { ! ping 2>"$WORK/err" && grep -q "it refuses this key\|not, or no longer\|no longer" "$WORK/err"; }
wait_until 20 refused
wait_until 20 grep -q "warning: tail: " "$WORK/tail.log"
expect_exit 0 owner keys --csv
[ "$(wc -l <"$WORK/out")" -eq 2 ] || fail "not one key is left"
for when in 2020-01-01 0s x 1h2; do
  expect_exit 2 owner authorize "$own" --role reader --name reader.2 --expires $when
done
expect_exit 0 owner authorize "$own" --role reader --name reader.2 --expires 90d
grep -q " expires $(date -u -d '+90 days' +%Y-%m-%d)T[0-9:]*Z$" "$WORK/authorized" || fail "no end in the file"
expect_exit 0 owner keys
expect_text "$WORK/out" "$(date -d '+90 days' +%Y-%m-%d)"
wait_until 20 admitted # without anything being started anew
wait_until 20 grep -q "answers again" "$WORK/tail.log"
seen_more "$(wc -l <"$WORK/tail.log")"
stop tail INT

# ---- Another collector in its place ------------------------------------------------------------

stop collector
expect_exit 0 "$INFERSTAT" keygen --server "$WORK/other.key"
start collector "$INFERSTATD" --listen "$tcp" --db "$DB" --key "$WORK/other.key" \
  --authorized-keys "$WORK/authorized"
strange() { ! ping 2>"$WORK/err" && grep -q "another key than the one known here" "$WORK/err"; }
wait_until 20 strange
# A path of 40 characters may look like a key, and is a path.
path=$WORK/other.key.pub
if [ ${#WORK} -lt 38 ]; then
  path=$WORK/$(printf '%*s' $((39 - ${#WORK})) '' | tr ' ' a)
  cp "$WORK/other.key.pub" "$path"
fi
expect_exit 0 "$INFERSTAT" trust --force "$tcp" "$path"
wait_until 20 admitted
