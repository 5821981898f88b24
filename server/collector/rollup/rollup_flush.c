#include "server/collector/rollup/rollup_flush.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "server/collector/rollup/rollup_upsert.h"
#include "server/collector/rollup/rollup_accumulator.h"

enum { BLOCK = 256 }; // values looked up at once

struct rollup_flush {
    struct rollup_upsert *rows;
    struct rollup_groups groups;      // of the slice
    struct accumulator *accumulators; // [group]: the values of one metric
    struct accumulator_pool pool;
    struct accumulator_counts counts; // all zero between groups and rows
    struct sketch *sketch;            // a record's
};

enum status rollup_flush_new(struct rollup_flush **out, sqlite3 *db, struct error *err)
{
    struct rollup_flush *flush = calloc(1, sizeof *flush);
    if (!flush)
        return error_no_memory(err, "rollups");
    enum status status =
        sketch_new(&flush->sketch) == STATUS_OK ? STATUS_OK : error_no_memory(err, "rollups");
    if (status == STATUS_OK)
        status = rollup_upsert_new(&flush->rows, db, err);
    if (status != STATUS_OK) {
        rollup_flush_free(flush);
        return status;
    }
    *out = flush;
    return STATUS_OK;
}

static void end_slice(struct rollup_flush *flush)
{
    rollup_groups_deinit(&flush->groups);
    accumulator_counts_clear(&flush->counts);
    free(flush->accumulators);
    flush->accumulators = NULL;
}

void rollup_flush_end(struct rollup_flush *flush)
{
    end_slice(flush);
    accumulator_pool_deinit(&flush->pool);
}

void rollup_flush_free(struct rollup_flush *flush)
{
    if (!flush)
        return;
    rollup_flush_end(flush);
    rollup_upsert_free(flush->rows);
    sketch_free(flush->sketch);
    free(flush);
}

enum status rollup_flush_begin(struct rollup_flush *flush, const struct rollup_slice *slice,
                               struct error *err)
{
    end_slice(flush);
    enum status status = rollup_groups_init(&flush->groups, slice, flush->rows, err);
    if (status != STATUS_OK)
        return status;
    const size_t groups = flush->groups.count ? flush->groups.count : 1;
    flush->accumulators = calloc(groups, sizeof *flush->accumulators);
    if (flush->accumulators)
        return STATUS_OK;
    rollup_flush_end(flush);
    return error_no_memory(err, "rollups");
}

const struct rollup_groups *rollup_flush_groups(const struct rollup_flush *flush)
{
    return &flush->groups;
}

// ---- Values of a metric by group -----------------------------------------------------------

// Rows of the memtable, at most a block.
struct rows {
    const uint32_t *list;
    size_t count;
};

// Those of them that have a value of the column.
static struct rows rows_with(const struct rollup_column *column, struct rows rows, uint32_t *room)
{
    if (!column->lacks)
        return rows;
    size_t count = 0;
    for (size_t i = 0; i < rows.count; i++)
        if (column->has[rows.list[i]])
            room[count++] = rows.list[i];
    return (struct rows){room, count};
}

static void look_up(const struct rollup_column *column, struct rows rows, int64_t *out)
{
    for (size_t i = 0; i < rows.count; i++)
        out[i] = column->integers[rows.list[i]];
}

static void add_integers(struct accumulator *accumulator, struct accumulator_counts *counts,
                         const struct rollup_column *column, struct rows rows)
{
    int64_t values[BLOCK];
    look_up(column, rows, values);
    accumulator_integers(accumulator, counts, values, rows.count);
}

static void add_reals(struct accumulator *accumulator, struct accumulator_counts *counts,
                      const struct rollup_column *column, struct rows rows)
{
    double values[BLOCK];
    for (size_t i = 0; i < rows.count; i++)
        values[i] = column->reals[rows.list[i]];
    accumulator_reals(accumulator, counts, values, rows.count);
}

_Static_assert(ROLLUP_INPUTS_MAX == 3, "add_ratios takes as many");

static void add_ratios(struct accumulator *accumulator, struct accumulator_counts *counts,
                       const struct rollup_column *columns, const struct rollup_metric *metric,
                       struct rows rows)
{
    int64_t inputs[ROLLUP_INPUTS_MAX][BLOCK];
    double numerators[BLOCK], denominators[BLOCK];
    uint32_t rooms[2][BLOCK];
    const unsigned inputs_count = metric->formula.column_count;
    for (unsigned i = 0; i < inputs_count; i++)
        rows = rows_with(&columns[metric->formula.columns[i]], rows, rooms[i % 2]);
    for (unsigned i = 0; i < ROLLUP_INPUTS_MAX; i++) // the last again where there are fewer
        look_up(&columns[metric->formula.columns[i < inputs_count ? i : inputs_count - 1]], rows,
                inputs[i]);
    size_t count = 0;
    for (size_t i = 0; i < rows.count; i++) {
        const int64_t values[ROLLUP_INPUTS_MAX] = {inputs[0][i], inputs[1][i], inputs[2][i]};
        count += rollup_formula_value(&metric->formula, values, &numerators[count],
                                      &denominators[count]);
    }
    accumulator_ratios(accumulator, counts, numerators, denominators, count);
}

// A flush and the accumulator that a sketch's buckets go to.
struct taking {
    struct accumulator *accumulator;
    struct accumulator_counts *counts;
};

static void add_bucket(void *context, double value, uint64_t count)
{
    const struct taking *taking = context;
    accumulator_add(taking->accumulator, taking->counts, value, count);
}

// What a record's sketch may count: a sum of them stays far below 64 bits.
#define SKETCH_COUNT_MAX (UINT64_C(1) << 40)

// Sketches that are none have no values.
static void add_sketches(struct rollup_flush *flush, struct accumulator *accumulator,
                         const struct rollup_column *column, struct rows rows)
{
    struct taking taking = {accumulator, &flush->counts};
    for (size_t i = 0; i < rows.count; i++) {
        const struct rollup_blob blob = column->blobs[rows.list[i]];
        sketch_reset(flush->sketch);
        if (sketch_decode(flush->sketch, flush->groups.memtable->bytes + blob.at, blob.size) ==
                STATUS_OK &&
            sketch_count(flush->sketch) <= SKETCH_COUNT_MAX)
            sketch_each(flush->sketch, add_bucket, &taking);
    }
}

static void add_block(struct rollup_flush *flush, const struct rollup_metric *metric,
                      struct rows rows, struct accumulator *accumulator)
{
    const struct rollup_column *columns = flush->groups.memtable->columns;
    const struct rollup_column *column = &columns[metric->formula.columns[0]];
    struct accumulator_counts *counts = &flush->counts;
    uint32_t room[BLOCK];
    switch (metric->source) {
    case ROLLUP_INTEGERS:
        add_integers(accumulator, counts, column, rows_with(column, rows, room));
        break;
    case ROLLUP_REALS:
        add_reals(accumulator, counts, column, rows_with(column, rows, room));
        break;
    case ROLLUP_RATIOS:
        add_ratios(accumulator, counts, columns, metric, rows);
        break;
    case ROLLUP_SKETCHES:
        add_sketches(flush, accumulator, column, rows_with(column, rows, room));
        break;
    }
}

static enum status aggregate_group(struct rollup_flush *flush, const struct rollup_metric *metric,
                                   const struct rollup_minute *group,
                                   struct accumulator *accumulator)
{
    const uint32_t *row = flush->groups.order + group->first, *const end = row + group->count;
    *accumulator = (struct accumulator){0};
    while (row < end) {
        const struct rows rows = {row, end - row < BLOCK ? (size_t)(end - row) : BLOCK};
        add_block(flush, metric, rows, accumulator);
        row += rows.count;
    }
    return accumulator_end(accumulator, &flush->counts, &flush->pool);
}

static enum status aggregate_groups(struct rollup_flush *flush, const struct rollup_metric *metric)
{
    enum status status = STATUS_OK;
    flush->pool.used = 0;
    for (size_t g = 0; g < flush->groups.count && status == STATUS_OK; g++)
        status = aggregate_group(flush, metric, &flush->groups.list[g], &flush->accumulators[g]);
    return status;
}

// ---- Rows ----------------------------------------------------------------------------------

// Adds members, which are all of a row's, to the row.
static enum status write_row(struct rollup_flush *flush, const struct rollup_metric *metric,
                             const struct rollup_row_key *key, const struct rollup_member *members,
                             size_t count, struct error *err)
{
    const struct accumulator *first = &flush->accumulators[members[0].group];
    struct accumulator sum = {0};
    const size_t used = flush->pool.used;
    for (size_t i = 0; i < count && count > 1; i++)
        accumulator_merge(&sum, &flush->counts, &flush->accumulators[members[i].group],
                          &flush->pool);
    if (count > 1 && accumulator_end(&sum, &flush->counts, &flush->pool) != STATUS_OK)
        return error_no_memory(err, "rollups");
    const struct accumulator *row = count > 1 ? &sum : first;
    const enum status status =
        row->sums.values.count > 0
            ? rollup_upsert_add(flush->rows, key, row, &flush->pool, metric->source, err)
            : STATUS_OK;
    flush->pool.used = used;
    return status;
}

static enum status write_level(struct rollup_flush *flush, const struct rollup_metric *metric,
                               enum rollup_grouping grouping, enum rollup_level level,
                               const struct gap_set *gaps, struct rollup_row_key *damaged,
                               struct error *err)
{
    const struct rollup_member *members = flush->groups.members[grouping];
    enum status status = STATUS_OK;
    size_t end = 0;
    for (size_t first = 0; first < flush->groups.count && status == STATUS_OK; first = end) {
        const int64_t bucket = rollup_bucket(level, members[first].minute);
        const int64_t next = rollup_next(level, bucket);
        const struct rollup_row_key key = {metric->number, grouping, level, bucket,
                                           members[first].series};
        for (end = first + 1; end < flush->groups.count && members[end].series == key.series &&
                              members[end].minute < next;)
            end++;
        if (gap_set_touches(gaps, level, bucket, next))
            continue;
        status = write_row(flush, metric, &key, members + first, end - first, err);
        if (status == STATUS_CORRUPT)
            *damaged = key;
    }
    return status;
}

static enum status write_metric(struct rollup_flush *flush, const struct rollup_metric *metric,
                                unsigned levels, const struct gap_set *gaps,
                                struct rollup_row_key *damaged, struct error *err)
{
    if (aggregate_groups(flush, metric) != STATUS_OK)
        return error_no_memory(err, "rollups");
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++) {
        status = rollup_upsert_begin(flush->rows, metric->number, (enum rollup_grouping)g, err);
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++)
            if (levels & 1U << level)
                status = write_level(flush, metric, (enum rollup_grouping)g,
                                     (enum rollup_level)level, &gaps[g], damaged, err);
    }
    return status;
}

enum status rollup_flush_write(struct rollup_flush *flush, unsigned levels,
                               const struct gap_set *gaps, struct rollup_row_key *damaged,
                               struct error *err)
{
    const struct rollup_metrics *metrics = rollup_metrics_of(flush->groups.memtable->kind);
    enum status status = STATUS_OK;
    *damaged = (struct rollup_row_key){0};
    for (unsigned m = 0; m < metrics->count && status == STATUS_OK; m++)
        status = write_metric(flush, &metrics->list[m], levels, gaps, damaged, err);
    return status;
}
