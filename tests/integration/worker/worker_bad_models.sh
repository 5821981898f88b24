#!/usr/bin/env bash
# Files that are no models: one line of error that names the file and says why, exit
# code 4, and no more memory than the file's own size.
. "$(dirname "$0")/../../support/lib.sh"

"$WORKER" make-model --shape tiny --type f32 "$WORK/tiny.gguf" >/dev/null
size=$(stat -c %s "$WORK/tiny.gguf")

# refused FILE TEXT [ARGUMENT]...
refused() {
  local file=$1 text=$2
  shift 2
  expect_exit 4 "$WORKER" --threads 2 llm --no-report --model "$file" --tokens 1 "$@"
  [ "$(wc -l <"$WORK/err")" -eq 1 ] || fail "$file: not one line of error"
  expect_text "$WORK/err" "inferstat-worker: $file: "
  expect_text "$WORK/err" "$text"
}

# patched NAME OFFSET BYTES: a copy with bytes replaced (as printf writes them).
patched() {
  cp "$WORK/tiny.gguf" "$WORK/$1"
  printf '%b' "$3" | dd of="$WORK/$1" bs=1 seek="$2" conv=notrunc status=none
}

# where TEXT: its offset in the model.
where() {
  LC_ALL=C grep -obUaF -- "$1" "$WORK/tiny.gguf" | head -n 1 | cut -d: -f1
}

refused "$WORK/none.gguf" "cannot open: No such file"
refused "$WORK" "not a regular file"
: >"$WORK/empty.gguf"
refused "$WORK/empty.gguf" "too short"
printf 'a text' >"$WORK/text.gguf"
refused "$WORK/text.gguf" "not a GGUF file"
patched version.gguf 4 '\x01'
refused "$WORK/version.gguf" "version 1 is not supported"
patched tensors.gguf 8 '\xff\xff\xff\xff\xff\xff\xff\xff'
refused "$WORK/tensors.gguf" "more tensors than the file can hold"
patched keys.gguf 16 '\xff\xff\xff\xff\xff\xff\xff\xff'
refused "$WORK/keys.gguf" "more keys than the file can hold"
for cut in 10 1000 $((size / 2)) $((size - 100)); do
  head -c "$cut" "$WORK/tiny.gguf" >"$WORK/cut.gguf"
  refused "$WORK/cut.gguf" ""
done
at=$(where general.architecture)
patched architecture.gguf $((at + 20 + 4 + 8)) 'bloom'
refused "$WORK/architecture.gguf" "architecture 'bloom' is not supported"
patched missing.gguf "$at" 'general.architecturE'
refused "$WORK/missing.gguf" "key 'general.architecture' is missing"
at=$(where llama.block_count)
patched type.gguf $((at + 17)) '\x06'
refused "$WORK/type.gguf" "key 'llama.block_count' should be an integer, is float32"
patched layers.gguf $((at + 17 + 4)) '\xe8\x03'
refused "$WORK/layers.gguf" "tensor 'blk.2.attn_norm.weight' is missing"
at=$(where blk.0.attn_q.weight)
patched quantised.gguf $((at + 19 + 4 + 16)) '\x14'
refused "$WORK/quantised.gguf" "tensor 'blk.0.attn_q.weight' is of type IQ4_NL"
patched offset.gguf $((at + 19 + 4 + 16 + 4)) '\x00\x00\x00\x00\xff'
refused "$WORK/offset.gguf" "lies outside the file"
patched misaligned.gguf $((at + 19 + 4 + 16 + 4)) '\x01'
refused "$WORK/misaligned.gguf" "is not aligned"
patched nan.gguf "$(($(where llama.attention.layer_norm_rms_epsilon) + 38 + 4))" '\x00\x00\xc0\x7f'
refused "$WORK/nan.gguf" "layer_norm_rms_epsilon"

# Weights that are no numbers load; the request says so and the worker serves on.
cp "$WORK/tiny.gguf" "$WORK/weights.gguf"
printf '\0\0\300\177%.0s' {1..64} |
  dd of="$WORK/weights.gguf" bs=1 seek=$((size - 256)) conv=notrunc status=none
expect_exit 1 "$WORKER" llm --no-report --model "$WORK/weights.gguf" --requests 2
expect_text "$WORK/err" "request 2: the model's score for token 0 is no finite number"

# Promises of petabytes cost nothing: with an address space of 128 MB, of which the
# program and its threads alone need 90, every one of these ends as before.
if [ -z "${INFERSTAT_SANITIZE-}" ]; then
  export MALLOC_ARENA_MAX=1
  ulimit -v 131072
  at=$(where token_embd.weight)
  patched huge.gguf $((at + 17 + 4 + 8)) '\x00\x00\x00\x00\x00\x00\x00\x10'
  refused "$WORK/huge.gguf" "has an impossible shape"
  patched large.gguf $((at + 17 + 4 + 8)) '\x00\x00\x00\x00\x00\x01'
  refused "$WORK/large.gguf" "lies outside the file"
  at=$(where tokenizer.ggml.tokens)
  patched array.gguf $((at + 21 + 4 + 4)) '\xff\xff\xff\xff\xff\xff\xff\x0f'
  refused "$WORK/array.gguf" "an array longer than the file"
  at=$(where llama.embedding_length)
  patched head.gguf $((at + 22 + 4)) '\x00\x00\x02'
  refused "$WORK/head.gguf" "heads of 32768 elements"

  # A context of 16 million positions: used as far as is sensible by itself, refused
  # where it is asked for.
  patched long.gguf "$(($(where llama.context_length) + 20 + 4))" '\x00\x00\x00\x01'
  expect_exit 0 "$WORKER" --threads 2 llm --no-report --model "$WORK/long.gguf" --tokens 1
  refused "$WORK/long.gguf" "a context of 16777216 needs 8.0 GB" --context 16777216
fi
