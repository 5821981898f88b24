#!/usr/bin/env bash
# The worker's command line: help, usage errors, prompts, output, exit codes.
. "$(dirname "$0")/../../support/lib.sh"

model=$WORK/tiny.gguf
llm() { "$WORKER" llm --no-report --model "$model" "$@"; }

# figure NAME: that number of the JSON object in $WORK/out.
figure() {
  sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "$WORK/out"
}

expect_figure() {
  [ "$(figure "$1")" = "$2" ] || fail "$1 is $(figure "$1"), not $2"
}

# ---- Help and usage ----

expect_exit 0 "$WORKER" --help
expect_text "$WORK/out" "make-model"
[ ! -s "$WORK/err" ] || fail "--help writes to standard error"
expect_exit 0 "$WORKER" llm --help
expect_text "$WORK/out" "--model FILE.gguf"
expect_text "$WORK/out" "--collector ADDR"
expect_exit 0 "$WORKER" --version
grep -qE '^inferstat-worker [0-9]+\.[0-9]+\.[0-9]+$' "$WORK/out" || fail "--version"

# refused TEXT ARGUMENT...: usage, with those words and the program's name.
refused() {
  local text=$1
  shift
  expect_exit 2 "$WORKER" "$@"
  expect_text "$WORK/err" "inferstat-worker: "
  expect_text "$WORK/err" "$text"
  [ "$(wc -l <"$WORK/err")" -eq 1 ] || fail "more than one line of error"
  [ ! -s "$WORK/out" ] || fail "a usage error writes to standard output"
}

refused "no workload"
refused "unknown workload 'lm' (did you mean llm?)" lm
refused "--modle: unknown option (did you mean --model?)" llm --modle x
refused "--tokens: unknown option" --tokens 3 llm
refused "no model" llm
refused "--model: a value is missing" llm --model
refused "--tokens" llm --model x --tokens 0
refused "--tokens" llm --model x --tokens 12x
refused "--rate" llm --model x --rate 0
refused "--top-p" llm --model x --top-p 1.5
refused "--requests" llm --model x --requests 0
refused "--requests" llm --model x --requests often
refused "--until-steady: a value is missing" llm --model x --until-steady
refused "--until-steady: 0 is outside 0.001 to 1" llm --model x --until-steady 0
refused "--until-steady: 3 is outside 0.001 to 1" llm --model x --until-steady 3
refused "--repeats: 4 is outside 5 to 1000" llm --model x --until-steady 0.1 --repeats 4
refused "--repeats 6: until when is not said" llm --model x --repeats 6
refused "--requests: not with --until-steady" llm --model x --until-steady 0.1 --requests 9
refused "with --tokens 1 there are no tokens/s" llm --model x --until-steady 0.1 --tokens 1
refused "'all' is none of none, layers" llm --model x --profile all
refused "log-level" --log-level loud llm --model x
refused "unexpected 'x'" llm --model m x
refused "prompts from several places" llm --model x --prompt a -
refused "prompts from several places" llm --model x --prompt a --prompt-file b
refused "one file to write" make-model
refused "one file to write" make-model a b
refused "'2b' is none of tiny, 15m, 42m, 110m, 1b, 8b" make-model --shape 2b x.gguf
refused "'q3_k' is none of f32, f16, bf16, q8_0, " make-model --type q3_k x.gguf
refused "0 % of the weights of shape tiny would have it" make-model --shape tiny --type q6_k x.gguf
expect_text "$WORK/err" "(shapes that suit: 110m, 1b, 8b)"
refused "not an address" --collector nonsense://x llm --model x

# ---- Synthetic models ----

expect_exit 0 "$WORKER" make-model --shape tiny --type f32 "$model"
expect_text "$WORK/out" "synthetic"
[ "$(find "$WORK" -name 'tiny.gguf*' | wc -l)" -eq 1 ] || fail "a temporary file is left"
grep -qa 'Synthetic: random weights' "$model" || fail "the model does not say that it is synthetic"
[ "$(stat -c %a "$model")" = "$(printf '%o' $((0666 & ~$(umask))))" ] || fail "odd permissions"
cp "$model" "$WORK/first.gguf"
expect_exit 0 "$WORKER" make-model --force --shape tiny --type f32 "$model"
cmp -s "$model" "$WORK/first.gguf" || fail "the same seed gives another model"
expect_exit 0 "$WORKER" make-model --shape tiny --type f32 --seed 2 "$WORK/second.gguf"
! cmp -s "$model" "$WORK/second.gguf" || fail "another seed gives the same model"
expect_exit 4 "$WORKER" make-model "$WORK/none/x.gguf"
expect_text "$WORK/err" "$WORK/none/x.gguf: cannot write"

# Every type loads and runs.  No row of the tiny shape is a multiple of 256 weights.
for type in f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q4_k q5_k q6_k; do
  shape=tiny
  [[ $type != *_k ]] || shape=15m
  expect_exit 0 "$WORKER" make-model --force --shape "$shape" --type "$type" "$WORK/$type.gguf"
  expect_exit 0 "$WORKER" llm --no-report --device cpu --model "$WORK/$type.gguf" --tokens 3 --json
  expect_figure generated_tokens 3
done
expect_exit 0 "$WORKER" make-model --force --shape tiny --type q8_0 "$WORK/q8_0.gguf" --log-level info
expect_text "$WORK/out" "q8_0 (86 % of the weights are q8_0, the others f16)"
expect_text "$WORK/err" "q8_0.gguf: writing "

# A file of 160 MB is written with less memory.
python3 - "$WORKER" "$WORK/stream.gguf" <<'PYTHON' || fail "the memory that a model takes to write"
import os, resource, subprocess, sys
subprocess.run([sys.argv[1], "make-model", "--shape", "42m", "--type", "f32", sys.argv[2]],
               check=True, stdout=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
assert os.path.getsize(sys.argv[2]) > 150e6 and peak < 100e6, peak
PYTHON
rm "$WORK/stream.gguf"

limited() { (ulimit -f 64 && exec "$@"); } # no file grows beyond 64 KiB
expect_exit 4 limited "$WORKER" make-model --shape tiny "$WORK/cut.gguf"
expect_text "$WORK/err" "$WORK/cut.gguf: cannot write"
# It ends at the error: the rest of a large model would take minutes.
expect_exit 4 limited timeout 60 "$WORKER" make-model --shape 8b "$WORK/cut.gguf"
[ "$(find "$WORK" -name 'cut.gguf*' | wc -l)" -eq 0 ] || fail "a model that is cut short is left"

# What is there stays, unless asked; a device or a link always does.
printf precious >"$WORK/kept.gguf"
ln -s kept.gguf "$WORK/link.gguf"
expect_exit 4 "$WORKER" make-model --shape tiny "$WORK/kept.gguf"
expect_text "$WORK/err" "already exists (--force replaces it)"
expect_exit 4 "$WORKER" make-model --force --shape tiny "$WORK/link.gguf"
expect_text "$WORK/err" "is no regular file"
[ "$(cat "$WORK/kept.gguf")" = precious ] || fail "make-model replaced a file unasked"
[ -L "$WORK/link.gguf" ] || fail "make-model replaced a link"

# Behind -- everything is a word, also what looks like an option.
(cd "$WORK" && expect_exit 0 "$WORKER" make-model --shape tiny -- -odd.gguf)
[ -s "$WORK/-odd.gguf" ] || fail "-- does not let a name begin with a dash"
refused "one file to write" make-model -- -odd.gguf --shape tiny

# What is printed must have arrived.
full() {
  local got=0
  "$WORKER" "$@" >/dev/full 2>"$WORK/err" || got=$?
  [ "$got" -eq 4 ] || fail "a full disk: exit code $got: $*"
  expect_text "$WORK/err" "No space left on device"
}
full --help
full --version
full llm --help
full make-model --shape tiny "$WORK/full.gguf"
full llm --no-report --model "$model" --tokens 2
full llm --no-report --model "$model" --tokens 2 --json

# ---- Prompts and text ----

llm --prompt "one" --tokens 10 >"$WORK/one"
llm --prompt "two" --tokens 10 >"$WORK/two"
cat "$WORK/one" "$WORK/two" >"$WORK/both"
printf 'one\n\ntwo\n' >"$WORK/prompts"
llm --prompt-file "$WORK/prompts" --tokens 10 | cmp - "$WORK/both" || fail "a file of prompts"
llm --prompt-file - --tokens 10 <"$WORK/prompts" | cmp - "$WORK/both" || fail "--prompt-file -"
llm - --tokens 10 <"$WORK/prompts" | cmp - "$WORK/both" || fail "prompts from standard input"
llm --prompt-file "$WORK/prompts" --requests 1 --tokens 10 | cmp - "$WORK/one" || fail "--requests 1"
cat "$WORK/both" "$WORK/one" >"$WORK/three"
llm --prompt-file "$WORK/prompts" --requests 3 --tokens 10 | cmp - "$WORK/three" ||
  fail "prompts begin again"
llm --prompt "one" --tokens 10 --threads 3 | cmp - "$WORK/one" || fail "threads change the text"
llm --temperature 1 --seed 4 --tokens 30 >"$WORK/sampled_a"
llm --temperature 1 --seed 4 --tokens 30 >"$WORK/sampled_b"
llm --temperature 1 --seed 5 --tokens 30 >"$WORK/sampled_c"
cmp -s "$WORK/sampled_a" "$WORK/sampled_b" || fail "the same seed gives other text"
! cmp -s "$WORK/sampled_a" "$WORK/sampled_c" || fail "another seed gives the same text"
iconv -f UTF-8 -t UTF-8 "$WORK/sampled_a" >/dev/null || fail "the text is not UTF-8"
# Prompts that have no token, that are no UTF-8, and that a chat template surrounds.
llm --prompt "" --tokens 5 >"$WORK/out" || fail "an empty prompt of a model that begins texts with a token"
printf '\xff\xc3(\xe2\x82\n' >"$WORK/prompts"
llm --prompt-file "$WORK/prompts" --tokens 5 >"$WORK/out" || fail "a prompt that is no UTF-8"
llm --prompt "[INST] one [/INST]" --tokens 10 >"$WORK/chat"
llm --prompt "one" --chat llama2 --tokens 10 | cmp - "$WORK/chat" || fail "--chat llama2"
expect_exit 4 "$WORKER" llm --no-report --model "$model" --chat auto
expect_text "$WORK/err" "tokenizer.chat_template"
# Descriptors that are closed: no file takes their place.
timeout 20 "$WORKER" llm --no-report --model "$model" --tokens 3 - <&- 2>"$WORK/err" && fail "no standard input"
expect_text "$WORK/err" "no prompts"
timeout 20 "$WORKER" llm --no-report --model "$model" --tokens 3 >&- 2>"$WORK/err" ||
  fail "no standard output: $(cat "$WORK/err")"
# A profile changes nothing but what is printed below.
llm --prompt "one" --tokens 10 --profile layers 2>"$WORK/err" | cmp - "$WORK/one" || fail "--profile"
for row in '^attn_q +2 ' '^attn_q +18 ' '^output +9 ' '^1 +150 ' '^outside layers +30 '; do
  [ "$(grep -cE "$row" "$WORK/err")" -eq 1 ] || fail "no row '$row': $(cat "$WORK/err")"
done
expect_exit 4 "$WORKER" llm --no-report --model "$model" --prompt-file "$WORK/none"
expect_text "$WORK/err" "$WORK/none: cannot open"

# ---- Tokens ----

expect_exit 0 "$WORKER" tokenize --model "$model" "ab"
printf "     1  '<s>'\n" | cmp - <(head -1 "$WORK/out") || fail "tokenize: $(cat "$WORK/out")"
printf 'ab' | "$WORKER" tokenize --model "$model" - | cmp - "$WORK/out" || fail "tokenize -"
expect_exit 0 "$WORKER" tokenize --model "$model" --no-special --parse-special "</s>"
printf "     2  '</s>'\n" | cmp - "$WORK/out" || fail "tokenize --parse-special"
printf 'a\xff' >"$WORK/odd"
"$WORKER" tokenize --model "$model" --json - <"$WORK/odd" >"$WORK/out" || fail "tokenize: odd bytes"
python3 -c 'import json, sys
tokens = json.load(open(sys.argv[1]))["tokens"]
assert tokens[0] == {"id": 1, "piece": "<s>", "hex": "3c733e"}, tokens
assert tokens[-1]["piece"] == "\ufffd" and tokens[-1]["hex"] == "ff", tokens' "$WORK/out" || fail "tokenize --json"
expect_exit 4 "$WORKER" tokenize --model "$WORK/none.gguf" x
expect_text "$WORK/err" "$WORK/none.gguf: cannot open"
refused "tokenize: no model" tokenize x
refused "one text is needed" tokenize --model "$model"
refused "--chat decides about control tokens" tokenize --model "$model" --chat llama2 --no-special x
head -c 17000000 /dev/zero | tr '\0' x >"$WORK/long"
got=0
"$WORKER" tokenize --model "$model" - <"$WORK/long" 2>"$WORK/err" || got=$?
[ "$got" -eq 2 ] || fail "tokenize: exit code $got of a text that is too long"
expect_text "$WORK/err" "too long"
rm "$WORK/long"
full tokenize --model "$model" ab

# ---- Figures ----

llm --prompt-file "$WORK/prompts" --requests 5 --tokens 7 --json >"$WORK/out" 2>"$WORK/err"
[ "$(wc -l <"$WORK/out")" -eq 1 ] || fail "--json: more than the object on standard output"
[ -s "$WORK/err" ] || fail "--json: the text is not on standard error"
expect_figure requests 5
expect_figure completed 5
expect_figure failed 0
expect_figure generated_tokens 35
llm --tokens 1 --json >"$WORK/out" 2>/dev/null
grep -q '"tokens_per_second": null' "$WORK/out" || fail "one token has no tokens per second"

# Requests are repeated until their speed is steady, or for so long; which, a machine's other
# work decides.
llm --prompt-file "$WORK/prompts" --tokens 5 --until-steady 0.5 --repeats 40 --json \
  >"$WORK/out" 2>"$WORK/err"
python3 - "$WORK/out" <<'PYTHON' || fail "repeats: $(cat "$WORK/out")"
import json, sys
figures = json.load(open(sys.argv[1]))
assert 5 <= figures["repeats"] == figures["requests"] == figures["completed"] <= 40, figures
assert figures["steady"] == (figures["tokens_per_second_interval_ratio"] <= 0.5), figures
assert figures["steady"] or figures["repeats"] == 40, figures
assert figures["tokens_per_second_median"] > 0 and figures["tokens_per_second_trimmed_mean"] > 0, figures
assert figures["generated_tokens"] == 5 * figures["requests"], figures
PYTHON
llm --tokens 2 --until-steady 0.001 --repeats 5 >"$WORK/out" 2>"$WORK/err"
[ "$(wc -l <"$WORK/out")" -eq 5 ] || fail "not five answers: $(cat "$WORK/out")"
expect_text "$WORK/err" "5 repeats: median "
expect_text "$WORK/err" "steady"
llm --tokens 2 --json >"$WORK/out" 2>"$WORK/err"
grep -q '"repeats": null, .*"steady": null' "$WORK/out" || fail "one request is no repeat"
# Requests that all fail come to an end too.
expect_exit 1 "$WORKER" llm --no-report --model "$model" --context 3 --prompt "too long for it" \
  --until-steady 0.1 --repeats 6 --json
expect_figure failed 6
grep -q '"tokens_per_second_median": null' "$WORK/out" || fail "a median of nothing"

# No prompt is no data: said so, and the object is there.
printf '\n\n' >"$WORK/prompts"
expect_exit 3 "$WORKER" llm --no-report --model "$model" --json --prompt-file "$WORK/prompts"
expect_text "$WORK/err" "warning: $WORK/prompts: no prompts"
expect_figure requests 0
expect_exit 3 "$WORKER" llm --no-report --model "$model" - </dev/null
expect_text "$WORK/err" "warning: standard input: no prompts"

# A line above 16 MiB is a request that failed; the run goes on.
{
  echo one
  head -c 17000000 /dev/zero | tr '\0' x
  printf '\ntwo\n'
} >"$WORK/prompts"
expect_exit 1 "$WORKER" llm --no-report --model "$model" --tokens 2 --json \
  --prompt-file "$WORK/prompts"
expect_text "$WORK/err" "$WORK/prompts:2: a line of more than"
expect_figure requests 3
expect_figure completed 2
expect_figure failed 1

# A prompt that does not fit is that request's failure.
printf 'a\nthis is a prompt far too long for it\n' >"$WORK/prompts"
expect_exit 1 "$WORKER" llm --no-report --model "$model" --context 12 --tokens 2 --json \
  --prompt-file "$WORK/prompts"
expect_text "$WORK/err" "does not fit a context of 12 (--context N, up to 256)"
expect_text "$WORK/err" "1 of 2 failed"
expect_figure failed 1
expect_figure completed 1
expect_exit 1 "$WORKER" llm --no-report --model "$model" --prompt "$(printf '%0300d' 0)"
expect_text "$WORK/err" "does not fit a context of 256 (the model's most)"
expect_exit 2 "$WORKER" llm --no-report --model "$model" --context 100000
expect_text "$WORK/err" "takes 1..256"

# ---- Devices and the log ----

llm --log-level info --tokens 5 >/dev/null 2>"$WORK/err"
expect_text "$WORK/err" "[LOAD] model=tiny"
grep -q 'tiny: weights: .* in .* (read in .*, copied in .*; page cache .*)' "$WORK/err" ||
  fail "no times of the weights: $(cat "$WORK/err")"
expect_text "$WORK/err" "stages=[device_selection="
expect_text "$WORK/err" "[INFER] model=tiny"
expect_text "$WORK/err" "tokens/sec="
expect_text "$WORK/err" "finish=length"
expect_text "$WORK/err" "chosen by auto"
llm --device cpu --tokens 5 >/dev/null 2>"$WORK/err"
[ ! -s "$WORK/err" ] || fail "by default a run that went well says nothing"
expect_exit 2 "$WORKER" llm --no-report --model "$model" --device cpu:0,1
expect_text "$WORK/err" "a model runs on one device (choose one, as --device cpu:0)"
CUDA_VISIBLE_DEVICES="" expect_exit 4 "$WORKER" llm --no-report --model "$model" --device cuda
grep -qE "this build has no cuda back end|no device answers" "$WORK/err" || fail "does not say why not"
# Where a device was looked for in vain, auto says so in one line.
tried=$(grep -c "no device answers" "$WORK/err" || true)
CUDA_VISIBLE_DEVICES="" llm --tokens 5 >/dev/null 2>"$WORK/err"
said=$(grep -c "chosen by auto (device cuda: no device answers" "$WORK/err" || true)
[ "$said" -eq "$tried" ] || fail "said $said times, and not $tried: $(cat "$WORK/err")"
[ "$(wc -l <"$WORK/err")" -eq "$tried" ] || fail "says more: $(cat "$WORK/err")"
expect_exit 2 "$WORKER" --device abacus llm --no-report --model "$model"
expect_text "$WORK/err" "no such device"

# A reader that goes away ends it, however much was asked for.
llm --requests forever --tokens 50 2>"$WORK/err" | head -c 100 >/dev/null || true
expect_text "$WORK/err" "its reader is gone"
