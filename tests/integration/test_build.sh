#!/usr/bin/env bash
# scripts/build.sh, with a cmake that only says it builds: what it shows, and where; and that
# scripts/run.sh says that it builds.
. "$(dirname "$0")/../support/lib.sh"

mkdir -p "$WORK/path" "$WORK/tree/scripts"
cp "$INFERSTAT_SOURCE/scripts/build.sh" "$WORK/tree/scripts/"
cat >"$WORK/path/cmake" <<'END'
#!/bin/sh
echo "$*" >>"$ASKED"
[ "$1" = --build ] || exit 0
echo '[1/2] Building C object a.c.o'
echo 'a.c:1: warning: it is odd'
echo '[2/2] Linking C executable a'
while [ -e "$GATE" ]; do sleep 0.05; done
[ -z "$BROKEN" ] || { echo 'a.c:2: error: it is wrong'; exit 1; }
END
chmod +x "$WORK/path/cmake"
export PATH="$WORK/path:$PATH" ASKED=$WORK/asked BROKEN='' GATE=$WORK/gate
build=$WORK/tree/scripts/build.sh

expect_exit 0 "$build" release -DX=1
[ "$(cat "$WORK/asked")" = "--preset release -DX=1
--build --preset release --target all" ] || fail "asked for: $(cat "$WORK/asked")"
[ "$(cat "$WORK/out")" = "build: release into build/release" ] || fail "says: $(cat "$WORK/out")"
[ "$(cat "$WORK/err")" = "a.c:1: warning: it is odd" ] || fail "without a terminal: $(cat "$WORK/err")"
INFERSTAT_TARGET="a b" expect_exit 0 "$build"
tail -n 1 "$WORK/asked" | grep -qx -- '--build --preset release --target a b' || fail "not these targets"

BROKEN=yes expect_exit 1 "$build"
expect_text "$WORK/err" "a.c:2: error: it is wrong"
expect_text "$WORK/err" "build: building release failed"
grep -q Linking "$WORK/err" && fail "shows what went well"

cp "$INFERSTAT_SOURCE"/scripts/{run,programs}.sh "$WORK/tree/scripts/"
printf '#!/bin/sh\n' >"$WORK/tree/scripts/setup.sh"
chmod +x "$WORK/tree/scripts/setup.sh"
BROKEN=yes expect_exit 1 env -u INFERSTAT_BIN "$WORK/tree/scripts/run.sh"
expect_text "$WORK/err" "run.sh: building inferstat into build/release: some minutes the first time, then seconds"
tail -n 1 "$WORK/asked" | grep -q -- '--target inferstat inferstatd inferstat-worker$' || fail "run.sh builds other things"

# In a terminal: how far it is, in a line that is gone at the end.
in_tmux() {
  tmux -L "inferstat-$$" -f /dev/null "$@"
}
at_leave() {
  rm -f "$GATE"
  in_tmux kill-server 2>/dev/null
}
on_screen() {
  in_tmux capture-pane -p -t build | grep -qx "$1"
}
touch "$GATE"
in_tmux new-session -d -s build -x 100 -y 30 "'$build'; echo over; exec sleep 30"
wait_until 20 on_screen '\[2/2\] Linking C executable a'
on_screen '\[1/2\].*' && fail "every step stays"
rm "$GATE"
wait_until 20 on_screen over
on_screen '\[2/2\].*' && fail "the last step stays"
on_screen 'a.c:1: warning: it is odd' || fail "no warning"
echo ok
