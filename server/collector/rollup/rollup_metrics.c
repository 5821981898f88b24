#include "server/collector/rollup/rollup_metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static struct rollup_metric derived_metric(const struct query_metric *metric)
{
    struct rollup_metric out = {.number = rollup_metric_number(metric), .source = ROLLUP_RATIOS};
    const bool parsed = rollup_formula_parse(&out.formula, metric->derived);
    assert(parsed && "RECORD_DERIVED has formulas that rollup_formula.h understands");
    (void)parsed;
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
                                  .formula = {.columns = {metric->column}, .column_count = 1}};
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
        out->list[out->count++] =
            (struct rollup_metric){.number = 256 * (int)kind + ITL_SKETCH,
                                   .source = ROLLUP_SKETCHES,
                                   .formula = {.columns = {ITL_SKETCH}, .column_count = 1}};
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
