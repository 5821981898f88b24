#!/usr/bin/env bash
# setup.sh installs what is missing and nothing else, asks for sudo only then,
# and without apt says what to install.  The system's apt and sudo are replaced
# by recorders; nothing is installed.
. "$(dirname "$0")/../support/lib.sh"

setup=$INFERSTAT_SOURCE/scripts/setup.sh
path=$PATH

# A PATH of our own: everything there is, with apt, sudo and id replaced.
mkdir "$WORK/tools" "$WORK/fakes" "$WORK/spare"
IFS=: read -ra folders <<<"$path"
for folder in "${folders[@]}"; do
  for tool in "$folder"/*; do
    [ -e "$WORK/tools/${tool##*/}" ] || ln -s "$tool" "$WORK/tools/" 2>/dev/null || true
  done
done
rm -f "$WORK"/tools/{apt-get,apt-cache,sudo}
cat >"$WORK/fakes/apt-get" <<'FAKE'
#!/usr/bin/env bash
echo "apt-get $*" >>"$WORK/calls"
case " $* " in
*" update "*) touch "$WORK/updated" ;;
*" install "*) [ -e "$WORK/broken" ] || mv "$WORK"/spare/* "$WORK/tools/" ;;
esac
FAKE
cat >"$WORK/fakes/apt-cache" <<'FAKE'
#!/usr/bin/env bash
[ -e "$WORK/stale" ] && [ ! -e "$WORK/updated" ] && echo "  Candidate: (none)" || echo "  Candidate: 1.0"
FAKE
cat >"$WORK/fakes/sudo" <<'FAKE'
#!/usr/bin/env bash
echo "sudo $*" >>"$WORK/calls"
[ "$1" != -n ] || shift
exec "$@"
FAKE
cat >"$WORK/fakes/id" <<'FAKE'
#!/usr/bin/env bash
echo "${FAKE_UID-0}"
FAKE
chmod +x "$WORK"/fakes/*

# try CODE [VARIABLE=VALUE]...: runs setup.sh; the calls it made are in $WORK/calls.
try() {
  local want=$1
  shift
  : >"$WORK/calls"
  rm -f "$WORK/updated"
  expect_exit "$want" env "PATH=$WORK/fakes:$WORK/tools" "$@" "$setup"
}
expect_calls() {
  [ "$(grep -c "$1" "$WORK/calls")" -eq "$2" ] || {
    cat "$WORK/calls" >&2
    fail "not $2 calls of: $1"
  }
}
lose() {
  mv "$WORK/tools/$1" "$WORK/spare/"
}

try 0
expect_calls . 0

try 0 FAKE_UID=1000
expect_calls . 0

lose tmux
try 0
expect_calls 'apt-get .*install .* tmux$' 1
expect_calls . 1

lose ninja
lose tmux
try 0 FAKE_UID=1000
expect_calls '^sudo -n .*install .* ninja-build tmux$' 1
expect_calls update 0

# Stale or empty package lists are fetched first.
touch "$WORK/stale"
lose ninja
try 0
expect_calls update 1
expect_calls 'install .* ninja-build$' 1
rm "$WORK/stale"

# What an installation does not bring is an error.
touch "$WORK/broken"
lose tmux
try 1
expect_text "$WORK/err" "still not found after installing: tmux"
rm "$WORK/broken"

# No sudo, not root; then no apt at all.
mv "$WORK/fakes/sudo" "$WORK/kept-sudo"
try 1 FAKE_UID=1000
expect_text "$WORK/err" "as root: apt-get install tmux"
expect_calls . 0
mv "$WORK/kept-sudo" "$WORK/fakes/sudo"

rm "$WORK/fakes/apt-get"
try 1
expect_text "$WORK/err" "missing, by their Debian names: tmux"
expect_calls . 0

mv "$WORK"/spare/tmux "$WORK/tools/"
try 0
expect_exit 2 "$setup" --nonsense
