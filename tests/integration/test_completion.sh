#!/usr/bin/env bash
# test_completion.sh MAKE_STORE: the completions in the shells themselves: options, words, and names
# that a store has, also hostile ones.
. "$(dirname "$0")/../support/lib.sh"

"$1" "$WORK/store.db"
sqlite3 "$WORK/store.db" "INSERT INTO name(text) VALUES('x \$(touch $WORK/touched)');
  UPDATE inference SET model = (SELECT max(id) FROM name) WHERE id = 1"
PATH=$(dirname "$INFERSTAT"):$PATH
export PATH HOME=$WORK
for shell in bash zsh fish; do "$INFERSTAT" completion "$shell" >"$WORK/$shell"; done

# What is typed, what it becomes.
cases="
inferstat --db $WORK/store.db now --model st|stories-15M
inferstat now --db=$WORK/store.db --host gpu-host-|gpu-host-1
inferstat --db $WORK/store.db avg --device=|cpu
inferstat avg --ste|--step
inferstat avg --by oper|operation
inferstat mod|models
inferstat avg inference.ttf|inference.ttft_ns
inferstat export --format jsonl|jsonl
inferstat baseline sav|save
inferstat import $WORK/store.d|$WORK/store.db
inferstat now --db $WORK/store.d|$WORK/store.db
inferstat export --output=$WORK/store.d|$WORK/store.db
"

# shellcheck disable=SC1091 # made above
. "$WORK/bash"
compopt() { :; } # only within a completion
while IFS='|' read -r typed wanted; do
  [ -n "$typed" ] || continue
  case $typed in *--device= | *--output=*) continue ;; esac # bash splits it elsewhere
  read -ra COMP_WORDS <<<"$typed"
  COMP_LINE=$typed COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _inferstat
  [ "${COMPREPLY[0]-}" = "$wanted" ] || fail "bash: $typed: ${COMPREPLY[*]}"
done <<<"$cases"
COMP_LINE="inferstat --db $WORK/store.db now --model x" COMP_WORDS=(inferstat now --model x) COMP_CWORD=3
_inferstat
[[ ${COMPREPLY[0]} == x* ]] || fail "bash: a hostile name: ${COMPREPLY[*]}"

tried=bash
if command -v fish >/dev/null; then
  tried="$tried, fish"
  while IFS='|' read -r typed wanted; do
    [ -n "$typed" ] || continue
    fish --no-config -c "source $WORK/fish; complete -C '$typed'" >"$WORK/out" 2>"$WORK/err"
    cut -f1 "$WORK/out" | grep -q -- "$wanted\$" || fail "fish: $typed: $(cat "$WORK/out" "$WORK/err")"
  done <<<"$cases"
  fish --no-config -c "source $WORK/fish; complete -C 'inferstat --db $WORK/store.db now --model x'" >"$WORK/out"
  grep -q '^x' "$WORK/out" || fail "fish: a hostile name"
fi
if command -v zsh >/dev/null; then
  tried="$tried, zsh"
  cat >"$WORK/zsh_test" <<'END'
zmodload zsh/zpty
zpty shell 'TERM=dumb zsh -f -i'
zpty -w shell "PROMPT='% '; autoload -Uz compinit; compinit -u -D; . $1/zsh; setopt nobeep; echo re''ady"
zpty -r -m shell seen '*ready*'
while IFS='|' read -r typed wanted; do
  [[ -n $typed ]] || continue
  zpty -w -n shell $'\x15'"$typed"$'\t'
  if ! { timeout_at=$((SECONDS + 20)); all=
    until [[ $all == *"$wanted"* ]] || (( SECONDS > timeout_at )); do
      zpty -r -t shell seen && all+=$seen || sleep 0.05
    done
    [[ $all == *"$wanted"* ]]; }; then
    print -r -- "$typed: $all"; exit 1
  fi
done <$1/cases
zpty -w -n shell $'\x15'"inferstat --db $1/store.db now --model x"$'\t'
sleep 0.5
zpty -d shell
END
  printf '%s' "$cases" >"$WORK/cases"
  timeout 200 zsh -f "$WORK/zsh_test" "$WORK" >"$WORK/out" 2>&1 || fail "zsh: $(cat -v "$WORK/out")"
fi
[ ! -e "$WORK/touched" ] || fail "a name was run as a command"
[ "$tried" = "bash, fish, zsh" ] || printf 'NOTICE: tried only in %s\n' "$tried"
