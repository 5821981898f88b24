#!/usr/bin/env bash
# What the collector has of a worker's loads and requests: stages, counts, reasons.
. "$(dirname "$0")/../../support/lib.sh"
command -v "$INFERSTATD" >/dev/null || skip "no collector is built"

"$WORKER" make-model --shape 42m --type f16 "$WORK/large.gguf" >/dev/null
"$WORKER" make-model --shape tiny "$WORK/tiny.gguf" >/dev/null
start_collector --log-level info

# run MODEL [ARGUMENT]...: a worker that reports; its object is left in $WORK/out.
run() {
  local model=$1
  shift
  "$WORKER" --collector "$COLLECTOR" llm --model "$WORK/$model.gguf" --json "$@" \
    >"$WORK/out" 2>"$WORK/err" || {
    cat "$WORK/err" >&2
    return 1
  }
}

figure() {
  sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$WORK/out"
}

sql() {
  sqlite3 -readonly "$DB" "$1"
}

# expect_sql WANT STATEMENT
expect_sql() {
  local got
  got=$(sql "$2")
  [ "$got" = "$1" ] || fail "'$got', not '$1': $2"
}

# ---- Stages ----

run large --tokens 3
[ "$(figure records_acknowledged)" = "$(figure records_produced)" ] || fail "not all was acknowledged"
expect_sql "device_selection file_opening read_header tokenizer_init model_building" \
  "select group_concat(stage, ' ') from (select stage from v_load_stage where model = 'large'
   order by ordinal)"
stage_sum="select sum(s.duration_ns) from load_stage s join load l
  on s.run = l.run and s.stream = l.stream and s.parent = l.number"
expect_sql 1 "select ($stage_sum) <= duration_ns from load"
share=$(sql "select ($stage_sum) * 1.0 / duration_ns from load")
awk -v share="$share" 'BEGIN { exit !(share >= 0.97) }' || fail "the stages are $share of the load"
expect_sql "$(stat -c %s "$WORK/large.gguf")" "select model_bytes from load"
expect_sql "$(figure load_duration_ns)" "select duration_ns from load"
expect_sql "large|gguf|llama|F16" "select name, format, architecture, quantisation from v_model"
# Keys and values of every layer, of four bytes each.
read -r layers heads kv_heads dim < <("$(dirname "$0")/../../support/gguf_file.py" "$WORK/large.gguf" \
  llama.block_count llama.attention.head_count llama.attention.head_count_kv llama.embedding_length)
expect_sql $((2 * layers * kv_heads * (dim / heads) * 4)) "select kv_bytes_per_token from v_model"
expect_sql "$(figure startup_duration_ns)" "select duration_ns from startup"
expect_sql "open_prompts load_model prepare_session" \
  "select group_concat(stage, ' ') from (select stage from v_load_stage where model is null
   order by ordinal)"

# The settings of the host and of the process are those that the worker prints, as far as known.
for setting in cpu_governor huge_pages allocator build_flags; do
  printed=$(sed -n "s/.*\"$setting\": \"\([^\"]*\)\".*/\1/p" "$WORK/out")
  expect_sql "$printed" "select coalesce($setting, '') from v_run"
done
expect_sql 2 "select (allocator <> '') + (build_flags like '% gcc % -%' or build_flags like '% clang % -%')
  from v_run"

# The weights' way to the device, as a pipeline: all of them, in less than the load.
expect_sql "ok|events|1|1|1" "select p.status, p.sync, p.bytes_h2d between l.model_bytes * 0.9 and
   l.model_bytes, p.duration_ns < l.duration_ns, p.copy_busy_ns between 1 and p.duration_ns
   from v_pipeline p join v_load l on l.run = p.run where p.workload = 'model_load'"
expect_sql 1 "select h2d_bytes_per_second > 0 from load"

# A delay in one stage is in the store as that stage's.
INFERSTAT_TEST_STAGE_DELAY=read_header:700 run tiny --tokens 1
expect_sql read_header "select stage from v_load_stage where model = 'tiny' and duration_ns >= 700000000"

# ---- Requests ----

run tiny --requests 6 --tokens 9 --rate 100
expect_sql "6|54|$(figure prompt_tokens)" \
  "select count(*), sum(generated_tokens), sum(prompt_tokens) from v_inference
   where run = (select run from v_load order by started_ns desc limit 1)"
expect_sql "1 2 3 4 5 6" "select group_concat(request, ' ') from (select request from v_inference
   where run = (select run from v_load order by started_ns desc limit 1) order by number)"

# Requests that have arrived and wait are in progress, too: of 11 that arrive at once, by the clock or
# as lines of a file that ends, each one that ends leaves one less.
printf 'prompt %s\n' {1..11} >"$WORK/prompts"
for requests in "--requests 11" "--prompt-file $WORK/prompts"; do
  # shellcheck disable=SC2086 # two words
  run tiny --tokens 5 --rate 1000000 $requests
  expect_sql "11 10 9 8 7 6 5 4 3 2 1" "select group_concat(concurrent_requests, ' ') from
     (select concurrent_requests from v_inference
     where run = (select run from v_load order by started_ns desc limit 1) order by request)"
done
expect_sql "file" "select distinct source from v_pipeline where workload = 'model_load'"

# A profile is an operation a request for each operation and layer.
run tiny --tokens 4 --requests 3 --profile layers
operations="from v_operation where run = (select run from v_load order by started_ns desc limit 1)"
rows=$(($(figure prompt_tokens) + 3 * 3)) # of a prompt, and of each token but the last
expect_sql "6|$((2 * rows))|24|0 1" "select count(*), sum(items), sum(extra ->> 'calls'),
  (select group_concat(layer, ' ') from (select distinct extra ->> 'layer' layer $operations
  and operation = 'llm.attn_q' order by 1)) $operations and operation = 'llm.attn_q'"
# Of the output matrix: 512 rows of 64 halves, its input and its output, for each of four tokens.
expect_sql "3|$((3 * 4 * (512 * 64 * 2 + 64 * 4 + 512 * 4)))|1|cpu" "select count(*), sum(bytes),
  sum(extra ->> 'layer') is null, max(device) $operations and operation = 'llm.output'"
expect_sql 1 "select sum(duration_ns) between 1 and (select sum(e2e_ns) from v_inference where run =
  (select run from v_load order by started_ns desc limit 1)) $operations and operation like 'llm.%'"

# ---- Failures ----

# A refused request has the reason and the tokens of its prompt.
! run tiny --context 12 --prompt "a prompt that is far too long" || fail "a long prompt is answered"
expect_sql "error|1|0|1" "select finish, prompt_tokens = $(figure prompt_tokens) and prompt_tokens > 12,
  generated_tokens, error = 'a prompt of ' || prompt_tokens || ' tokens does not fit a context of 12 (--context N, up to 256)'
  from v_inference order by started_ns desc limit 1"

head -c 3000 "$WORK/tiny.gguf" >"$WORK/broken.gguf"
! run broken || fail "a broken model runs"
expect_sql "broken|error" "select model, status from v_load order by started_ns desc limit 1"
expect_text <(sql "select error from v_load order by started_ns desc limit 1") "is it complete?"
expect_sql 0 "select count(*) from startup where run = (select run from load order by started_ns desc
  limit 1)"
runs=$(sql "select count(*) from run")
! run tiny --device gpu || fail "there is no gpu"
expect_exit 2 "$WORKER" --collector "$COLLECTOR" encode --encoder angle --device gpu
! run tiny --device cuda || fail "there is no cuda"
expect_sql "tiny|cuda|error" "select model, device, status from v_load order by started_ns desc limit 1"
expect_sql $((runs + 1)) "select count(*) from run" # none of a device that cannot exist

# The architecture is that of the file.
"$(dirname "$0")/../../support/llm/tiny_models.py" "$WORK"
run qwen3moe --tokens 2 --prompt ab
expect_sql "qwen3moe|F32" "select architecture, quantisation from v_model where name = 'qwen3moe'"
stop collector
