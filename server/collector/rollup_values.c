#include "server/collector/rollup_values.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// ---- Formulas --------------------------------------------------------------------------
//
// As SQLite computes them: whole numbers stay whole where they fit 64 bits.

static double difference(int64_t a, int64_t b)
{
    int64_t whole;
    return __builtin_sub_overflow(a, b, &whole) ? (double)a - (double)b : (double)whole;
}

static bool over(double above, double below, double *numerator, double *denominator)
{
    *numerator = above;
    *denominator = below;
    return below > 0;
}

// generated_tokens, decode_ns
static bool tokens_per_second(const int64_t *in, double *numerator, double *denominator)
{
    return in[0] >= 2 && over(difference(in[0], 1) * 1e9, (double)in[1], numerator, denominator);
}

// What is counted, the time it took.
static bool per_second(const int64_t *in, double *numerator, double *denominator)
{
    return over((double)in[0] * 1e9, (double)in[1], numerator, denominator);
}

// prompt_tokens, cached_prompt_tokens, prefill_ns
static bool prefill_tokens_per_second(const int64_t *in, double *numerator, double *denominator)
{
    return over(difference(in[0], in[1]) * 1e9, (double)in[2], numerator, denominator);
}

// e2e_ns, ttft_ns, generated_tokens
static bool tpot(const int64_t *in, double *numerator, double *denominator)
{
    return in[2] >= 2 &&
           over(difference(in[0], in[1]), difference(in[2], 1), numerator, denominator);
}

// after, before
static bool delta(const int64_t *in, double *numerator, double *denominator)
{
    return over(difference(in[0], in[1]), 1, numerator, denominator);
}

// model_bytes, status, duration_ns
static bool load_rate(const int64_t *in, double *numerator, double *denominator)
{
    return in[1] == 0 && over((double)in[0] * 1e9, (double)in[2], numerator, denominator);
}

// items, duration_ns: no rate of what came to nothing
static bool items_rate(const int64_t *in, double *numerator, double *denominator)
{
    return in[0] > 0 && per_second(in, numerator, denominator);
}

// both_busy_ns, copy_busy_ns, compute_busy_ns
static bool overlap(const int64_t *in, double *numerator, double *denominator)
{
    return over((double)in[0], (double)(in[1] < in[2] ? in[1] : in[2]), numerator, denominator);
}

// pool_waits, pool_acquires
static bool peer_credit(const int64_t *in, double *numerator, double *denominator)
{
    return over((double)in[0], (double)in[1], numerator, denominator);
}

// A line for each line of RECORD_DERIVED.
static const struct {
    enum record_kind kind;
    const char *name;
    rollup_formula *formula;
    int columns[ROLLUP_INPUTS_MAX];
    unsigned column_count;
} formulas[] = {
    {RECORD_KIND_INFERENCE,
     "tokens_per_second",
     tokens_per_second,
     {INFERENCE_GENERATED_TOKENS, INFERENCE_DECODE_NS},
     2},
    {RECORD_KIND_INFERENCE,
     "output_tokens_per_second",
     per_second,
     {INFERENCE_GENERATED_TOKENS, INFERENCE_E2E_NS},
     2},
    {RECORD_KIND_INFERENCE,
     "prefill_tokens_per_second",
     prefill_tokens_per_second,
     {INFERENCE_PROMPT_TOKENS, INFERENCE_CACHED_PROMPT_TOKENS, INFERENCE_PREFILL_NS},
     3},
    {RECORD_KIND_INFERENCE,
     "tpot_ns",
     tpot,
     {INFERENCE_E2E_NS, INFERENCE_TTFT_NS, INFERENCE_GENERATED_TOKENS},
     3},
    {RECORD_KIND_LOAD,
     "memory_delta_bytes",
     delta,
     {LOAD_HOST_MEMORY_AFTER, LOAD_HOST_MEMORY_BEFORE},
     2},
    {RECORD_KIND_LOAD,
     "load_bytes_per_second",
     load_rate,
     {LOAD_MODEL_BYTES, LOAD_STATUS, LOAD_DURATION_NS},
     3},
    {RECORD_KIND_STARTUP,
     "memory_delta_bytes",
     delta,
     {STARTUP_MEMORY_READY_BYTES, STARTUP_MEMORY_START_BYTES},
     2},
    {RECORD_KIND_PIPELINE,
     "overlap_ratio",
     overlap,
     {PIPELINE_BOTH_BUSY_NS, PIPELINE_COPY_BUSY_NS, PIPELINE_COMPUTE_BUSY_NS},
     3},
    {RECORD_KIND_PIPELINE,
     "pool_starvation_ratio",
     peer_credit,
     {PIPELINE_POOL_WAITS, PIPELINE_POOL_ACQUIRES},
     2},
    {RECORD_KIND_PIPELINE,
     "items_per_second",
     items_rate,
     {PIPELINE_ITEMS, PIPELINE_DURATION_NS},
     2},
    {RECORD_KIND_OPERATION,
     "items_per_second",
     per_second,
     {OPERATION_ITEMS, OPERATION_DURATION_NS},
     2},
};

// ---- Metrics of a kind -------------------------------------------------------------------

static struct rollup_metric derived_metric(const struct query_metric *metric)
{
    struct rollup_metric out = {.number = rollup_metric_number(metric), .source = ROLLUP_RATIOS};
    size_t i = 0;
    while (i < sizeof formulas / sizeof *formulas &&
           (formulas[i].kind != metric->kind || strcmp(formulas[i].name, metric->name) != 0))
        i++;
    assert(i < sizeof formulas / sizeof *formulas && "each derived metric has a formula");
    out.formula = formulas[i].formula;
    out.column_count = formulas[i].column_count;
    memcpy(out.columns, formulas[i].columns, sizeof out.columns);
    return out;
}

static struct rollup_metric stored_metric(const struct query_metric *metric)
{
    const enum column_type type = record_kind_info(metric->kind)->columns[metric->column].type;
    enum rollup_source source = ROLLUP_INTEGERS;
    if (type == COLUMN_REAL)
        source = ROLLUP_REALS;
    else if (type == COLUMN_BLOB)
        source = ROLLUP_SKETCHES;
    return (struct rollup_metric){.number = rollup_metric_number(metric),
                                  .source = source,
                                  .columns = {metric->column},
                                  .column_count = 1};
}

static int by_number(const void *a, const void *b)
{
    const int left = ((const struct rollup_metric *)a)->number;
    const int right = ((const struct rollup_metric *)b)->number;
    return (left > right) - (left < right);
}

static struct rollup_metrics all[RECORD_KIND_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The gaps between tokens are no column of numbers but one of sketches.
static bool is_of_sketches(const struct rollup_metrics *metrics)
{
    for (unsigned i = 0; i < metrics->count; i++)
        if (metrics->list[i].source == ROLLUP_SKETCHES)
            return true;
    return false;
}

static void make_kind(enum record_kind kind)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    struct rollup_metrics *out = &all[kind];
    out->count = rollup_metrics(kind, metrics);
    for (unsigned i = 0; i < out->count; i++)
        out->list[i] = metrics[i]->derived ? derived_metric(metrics[i]) : stored_metric(metrics[i]);
    if (kind == RECORD_KIND_ITL && !is_of_sketches(out) && out->count < ROLLUP_METRICS_MAX)
        out->list[out->count++] = (struct rollup_metric){.number = 256 * (int)kind + ITL_SKETCH,
                                                         .source = ROLLUP_SKETCHES,
                                                         .columns = {ITL_SKETCH},
                                                         .column_count = 1};
    qsort(out->list, out->count, sizeof *out->list, by_number);
}

static void make_all(void)
{
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        if (rollup_has_kind((enum record_kind)kind))
            make_kind((enum record_kind)kind);
}

const struct rollup_metrics *rollup_metrics_of(enum record_kind kind)
{
    (void)pthread_once(&once, make_all);
    return &all[kind];
}
