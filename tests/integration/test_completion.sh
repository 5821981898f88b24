#!/usr/bin/env bash
# test_completion.sh MAKE_STORE: the completions in the shells themselves: options, words, and names
# that a store has, also hostile ones.
. "$(dirname "$0")/../support/lib.sh"

"$1" "$WORK/store.db"
sqlite3 "$WORK/store.db" "INSERT INTO name(text) VALUES('x \$(touch $WORK/touched)''\"\`');
  UPDATE inference SET model = (SELECT max(id) FROM name) WHERE id = 1;
  INSERT INTO name(text) VALUES('a::b');
  UPDATE inference SET model = (SELECT max(id) FROM name) WHERE id = 2"
mkdir -p "$WORK/one" "$WORK/.config/inferstat"
echo "by-model = avg ttft_ns by model" >"$WORK/.config/inferstat/queries"
touch "$WORK/one/the file"
PATH=$(dirname "$INFERSTAT"):$PATH
export PATH HOME=$WORK
for shell in bash zsh fish; do "$INFERSTAT" completion "$shell" >"$WORK/$shell"; done

# What is typed, and the last word that the command then gets.
cases="
inferstat --db $WORK/store.db now --model st|stories-15M
inferstat now --db ~/store.db --host gpu-host-|gpu-host-1
inferstat --db $WORK/store.db pipelines --workload enc|encode
inferstat --db $WORK/store.db avg --device=c|--device=cpu
inferstat --db $WORK/store.db avg --device=NV|--device=NVIDIA H200
inferstat --db $WORK/store.db now --model a|a::b
inferstat --db $WORK/store.db now --model a:|a::b
inferstat --db $WORK/store.db now --model x|x \$(touch $WORK/touched)'\"\`
inferstat avg --ste|--step
inferstat avg --by oper|operation
inferstat mod|models
inferstat avg inference.ttf|inference.ttft_ns
inferstat avg ttft|ttft_ns
inferstat avg pipeline.items_per|pipeline.items_per_second
inferstat query overv|overview
inferstat query by-|by-model
inferstat export --format=c|--format=csv
inferstat baseline sav|save
inferstat import $WORK/store.d|$WORK/store.db
inferstat now --db $WORK/store.d|$WORK/store.db
inferstat export --output=$WORK/store.d|--output=$WORK/store.db
"
# Not for fish, which lists words: files of the folder, two words that may follow, quotes.
quoted="
inferstat import |the file
inferstat --db $WORK/store.db avg --device=|--device=
inferstat --db \"$WORK/store.db\" now --model \"x |x \$(touch $WORK/touched)'\"\`
inferstat --db=$WORK/store.db now --model='x |--model=x \$(touch $WORK/touched)'\"\`
inferstat --db '$WORK/store.db' now --model x\\ |x \$(touch $WORK/touched)'\"\`
"

# in_shell NAME COMMAND: types each case into that shell on a terminal, then Tab and Enter.
in_shell() {
  local typed wanted got
  coproc terminal { exec timeout 60 script -qfc "$2" /dev/null {test_stderr}>&- 2>&-; }
  printf '%s\n' "cd $WORK/one; . $WORK/$1_setup" >&"${terminal[1]}"
  while IFS='|' read -r typed wanted; do
    [ -n "$typed" ] || continue
    got=
    printf '%s\t\n' "$typed" >&"${terminal[1]}"
    until [[ $got == *got\<* ]]; do
      IFS= read -r -t 20 -d '>' -u "${terminal[0]}" got || fail "$1: $typed: $got"
    done
    [ "${got##*got<}" = "$wanted" ] || fail "$1: $typed: ${got##*got<}"
  done <<<"$cases$quoted"
  printf 'exit\n' >&"${terminal[1]}"
  wait $! || true
}

cat >"$WORK/bash_setup" <<END
inferstat() { [ "\$1" = completion ] && command inferstat "\$@" || printf 'got<%s>\n' "\${@: -1}"; }
[ -z "\$ZSH_VERSION" ] || { autoload -Uz compinit; compinit -u -D; }
END
cp "$WORK/bash_setup" "$WORK/zsh_setup"
cat "$WORK/bash" >>"$WORK/bash_setup"
cat "$WORK/zsh" >>"$WORK/zsh_setup"
in_shell bash "TERM=dumb bash --norc --noprofile -i"

tried=bash
if command -v fish >/dev/null; then
  tried="$tried, fish"
  while IFS='|' read -r typed wanted; do
    [ -n "$typed" ] || continue
    fish --no-config -c "source $WORK/fish; complete -C '$typed'" >"$WORK/out" 2>"$WORK/err"
    cut -f1 "$WORK/out" | grep -qxF -- "$wanted" || fail "fish: $typed: $(cat "$WORK/out" "$WORK/err")"
  done <<<"$cases"
fi
if command -v zsh >/dev/null; then
  tried="$tried, zsh"
  in_shell zsh "TERM=dumb zsh -f -i"
fi
"$INFERSTAT" completion typed -- --collector tcp://192.0.2.1:1 --insecure --host "" 2>"$WORK/err" || true
expect_text "$WORK/err" "without keys" # not that it is not trusted
[ ! -e "$WORK/touched" ] || fail "a name was run as a command"
[ "$tried" = "bash, fish, zsh" ] || printf 'NOTICE: tried only in %s\n' "$tried"
