#include "server/collector/rollup/rollup_flush.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "server/collector/rollup/rollup_upsert.h"
#include "server/collector/rollup/rollup_series.h"
#include "server/collector/rollup/rollup_accumulator.h"

enum {
    NO_LEVEL = ROLLUP_LEVEL_COUNT,
    BLOCK = 256, // values looked up at once
};

// A step of what is done for each metric: counts some members in a row, and may be its
// end, when it is written and counts in a coarser one.  So each record counts once in each
// grouping, in the finest row that is wanted.
struct step {
    int64_t bucket, series; // of the row
    uint32_t first, count;  // members
    uint8_t level, coarser; // coarser: NO_LEVEL, where no such row is wanted
    bool ends, is_whole;    // is_whole: this step is all of the row
};

struct steps {
    struct step *list;
    size_t count, room;
};

// A row at work.
struct job {
    struct accumulator accumulator;
    struct accumulator_counts counts;
};

struct rollup_flush {
    struct series_ids *ids;
    struct rollup_upsert *rows;
    struct accumulator_pool pool;
    struct sketch *spans;                 // of a record of sketches
    struct job works[ROLLUP_LEVEL_COUNT]; // empty between steps, [0] between groups
    struct rollup_groups groups;          // of the memtable at work
    struct steps steps[ROLLUP_GROUPING_COUNT];
    struct accumulator *accumulators; // of the metric at work, by group
};

enum status rollup_flush_new(struct rollup_flush **out, sqlite3 *db, struct error *err)
{
    struct rollup_flush *flush = calloc(1, sizeof *flush);
    if (!flush)
        return error_no_memory(err, "rollups");
    enum status status =
        sketch_new(&flush->spans) == STATUS_OK ? STATUS_OK : error_no_memory(err, "rollups");
    if (status == STATUS_OK)
        status = series_ids_new(&flush->ids, db, err);
    if (status == STATUS_OK)
        status = rollup_upsert_new(&flush->rows, db, err);
    if (status != STATUS_OK) {
        rollup_flush_free(flush);
        return status;
    }
    *out = flush;
    return STATUS_OK;
}

// Forgets the slice at work.
static void end_slice(struct rollup_flush *flush)
{
    rollup_groups_deinit(&flush->groups);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        flush->steps[g].count = 0;
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++) {
        accumulator_counts_clear(&flush->works[level].counts);
        flush->works[level].accumulator = (struct accumulator){0};
    }
    free(flush->accumulators);
    flush->accumulators = NULL;
}

void rollup_flush_end(struct rollup_flush *flush)
{
    end_slice(flush);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
        free(flush->steps[g].list);
        flush->steps[g] = (struct steps){0};
    }
    accumulator_pool_deinit(&flush->pool);
}

void rollup_flush_free(struct rollup_flush *flush)
{
    if (!flush)
        return;
    rollup_flush_end(flush);
    series_ids_free(flush->ids);
    rollup_upsert_free(flush->rows);
    sketch_free(flush->spans);
    free(flush);
}

void rollup_flush_forget(struct rollup_flush *flush)
{
    rollup_flush_end(flush);
    series_ids_forget(flush->ids);
}

enum status rollup_flush_begin(struct rollup_flush *flush, const struct rollup_slice *slice,
                               struct error *err)
{
    end_slice(flush);
    enum status status = rollup_groups_init(&flush->groups, slice, flush->ids, err);
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

// ---- Steps -------------------------------------------------------------------------------

// The row of a level that a member is in.
struct place {
    int64_t bucket, next;
    bool wanted;
    bool begun; // a step before counted something in it
};

static struct step *add_step(struct steps *steps, const struct step *step)
{
    if (!ARRAY_RESERVE(&steps->list, &steps->room, steps->count + 1))
        return NULL;
    steps->list[steps->count] = *step;
    return &steps->list[steps->count++];
}

static unsigned finest_wanted(const struct place *places, unsigned from)
{
    while (from < ROLLUP_LEVEL_COUNT && !places[from].wanted)
        from++;
    return from;
}

// Ends the rows of a series up to a level.
static bool end_rows(struct steps *steps, struct place *places, int64_t series, unsigned upto)
{
    for (unsigned level = 0; level <= upto; level++) {
        struct place *place = &places[level];
        if (!place->wanted)
            continue;
        const unsigned coarser = finest_wanted(places, level + 1);
        struct step *last = steps->count ? &steps->list[steps->count - 1] : NULL;
        if (!last || last->ends || last->level != level)
            last = add_step(steps, &(struct step){.level = (uint8_t)level});
        if (!last)
            return false;
        last->bucket = place->bucket;
        last->series = series;
        last->coarser = (uint8_t)coarser;
        last->ends = true;
        last->is_whole = !place->begun && last->count == 1;
        if (coarser < ROLLUP_LEVEL_COUNT)
            places[coarser].begun = true;
    }
    return true;
}

// Counts a member in the finest row that is wanted, if any is.
static bool count_member(struct steps *steps, struct place *places, uint32_t member)
{
    const unsigned level = finest_wanted(places, 0);
    struct step *last = steps->count ? &steps->list[steps->count - 1] : NULL;
    if (level == NO_LEVEL)
        return true;
    if (last && !last->ends && last->level == level && last->first + last->count == member) {
        last->count++;
        return true;
    }
    if (last && !last->ends) // of the same series, and not the row's last
        places[last->level].begun = true;
    return add_step(steps, &(struct step){.level = (uint8_t)level, .first = member, .count = 1}) !=
           NULL;
}

// The coarsest level whose row the time is not in, or -1.
static int left_level(const struct place *places, int64_t minute)
{
    int level = ROLLUP_MONTH;
    while (level >= 0 && minute >= places[level].bucket && minute < places[level].next)
        level--;
    return level;
}

static enum status plan_grouping(struct rollup_flush *flush, const struct rollup_scope *scope,
                                 enum rollup_grouping grouping)
{
    const struct rollup_member *members = flush->groups.members[grouping];
    struct steps *steps = &flush->steps[grouping];
    struct place places[ROLLUP_LEVEL_COUNT] = {{0}};
    steps->count = 0;
    for (uint32_t i = 0; i < flush->groups.count; i++) {
        const bool is_new = i == 0 || members[i].series != members[i - 1].series;
        const int left = is_new ? ROLLUP_MONTH : left_level(places, members[i].minute);
        if (left >= 0 && i > 0 && !end_rows(steps, places, members[i - 1].series, (unsigned)left))
            return STATUS_NOMEM;
        for (int at = 0; at <= left; at++) {
            const enum rollup_level level = (enum rollup_level)at;
            const int64_t bucket = rollup_bucket(level, members[i].minute);
            const int64_t next = rollup_next(level, bucket);
            places[at] = (struct place){
                .bucket = bucket,
                .next = next,
                .wanted = (scope->levels & 1U << at) &&
                          !gap_set_touches(&scope->gaps[grouping], level, bucket, next)};
        }
        if (!count_member(steps, places, i))
            return STATUS_NOMEM;
    }
    if (flush->groups.count > 0 &&
        !end_rows(steps, places, members[flush->groups.count - 1].series, ROLLUP_MONTH))
        return STATUS_NOMEM;
    return STATUS_OK;
}

static enum status make_plan(struct rollup_flush *flush, const struct rollup_scope *scope,
                             struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = plan_grouping(flush, scope, (enum rollup_grouping)g);
    return status == STATUS_OK ? status : error_no_memory(err, "rollups");
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
    if (column->is_wide)
        for (size_t i = 0; i < rows.count; i++)
            out[i] = column->integers[rows.list[i]];
    else
        for (size_t i = 0; i < rows.count; i++)
            out[i] = column->narrow[rows.list[i]];
}

static void accumulator_block_of_integers(struct accumulator *accumulator,
                                          struct accumulator_counts *counts,
                                          const struct rollup_column *column, struct rows rows)
{
    int64_t values[BLOCK];
    look_up(column, rows, values);
    accumulator_integers(accumulator, counts, values, rows.count);
}

static void accumulator_block_of_reals(struct accumulator *accumulator,
                                       struct accumulator_counts *counts,
                                       const struct rollup_column *column, struct rows rows)
{
    double values[BLOCK];
    for (size_t i = 0; i < rows.count; i++)
        values[i] = column->reals[rows.list[i]];
    accumulator_reals(accumulator, counts, values, rows.count);
}

_Static_assert(ROLLUP_INPUTS_MAX == 3, "accumulator_block_of_ratios takes as many");

static void accumulator_block_of_ratios(struct accumulator *accumulator,
                                        struct accumulator_counts *counts,
                                        const struct rollup_column *columns,
                                        const struct rollup_metric *metric, struct rows rows)
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

static void take_bucket(void *context, double value, uint64_t count)
{
    const struct taking *taking = context;
    accumulator_add(taking->accumulator, taking->counts, value, count);
}

// What a record's sketch may count: a sum of them stays far below 64 bits.
#define SKETCH_COUNT_MAX (UINT64_C(1) << 40)

// Sketches that are none have no values.
static void accumulator_sketches(struct rollup_flush *flush, struct accumulator *accumulator,
                                 const struct rollup_column *column, struct rows rows)
{
    struct taking taking = {accumulator, &flush->works[0].counts};
    for (size_t i = 0; i < rows.count; i++) {
        const struct rollup_blob blob = column->blobs[rows.list[i]];
        sketch_reset(flush->spans);
        if (sketch_decode(flush->spans, flush->groups.memtable->bytes + blob.at, blob.size) ==
                STATUS_OK &&
            sketch_count(flush->spans) <= SKETCH_COUNT_MAX)
            sketch_each(flush->spans, take_bucket, &taking);
    }
}

static void accumulator_block(struct rollup_flush *flush, const struct rollup_metric *metric,
                              struct rows rows, struct accumulator *accumulator)
{
    const struct rollup_column *columns = flush->groups.memtable->columns;
    const struct rollup_column *column = &columns[metric->formula.columns[0]];
    struct accumulator_counts *counts = &flush->works[0].counts;
    uint32_t room[BLOCK];
    switch (metric->source) {
    case ROLLUP_INTEGERS:
        accumulator_block_of_integers(accumulator, counts, column, rows_with(column, rows, room));
        break;
    case ROLLUP_REALS:
        accumulator_block_of_reals(accumulator, counts, column, rows_with(column, rows, room));
        break;
    case ROLLUP_RATIOS:
        accumulator_block_of_ratios(accumulator, counts, columns, metric, rows);
        break;
    case ROLLUP_SKETCHES:
        accumulator_sketches(flush, accumulator, column, rows_with(column, rows, room));
        break;
    }
}

static enum status accumulator_group(struct rollup_flush *flush, const struct rollup_metric *metric,
                                     const struct rollup_minute *group,
                                     struct accumulator *accumulator)
{
    const uint32_t *row = flush->groups.order + group->first, *const end = row + group->count;
    *accumulator = (struct accumulator){0};
    while (row < end) {
        const struct rows rows = {row, end - row < BLOCK ? (size_t)(end - row) : BLOCK};
        accumulator_block(flush, metric, rows, accumulator);
        row += rows.count;
    }
    return accumulator_end(accumulator, &flush->works[0].counts, &flush->pool);
}

// Groups of one record are counted from their row.
static bool has_rows(const struct rollup_metric *metric)
{
    return metric->source != ROLLUP_SKETCHES;
}

static enum status accumulator_groups(struct rollup_flush *flush,
                                      const struct rollup_metric *metric)
{
    flush->pool.used = 0;
    enum status status = STATUS_OK;
    for (size_t g = 0; g < flush->groups.count && status == STATUS_OK; g++)
        if (flush->groups.list[g].count > 1 || !has_rows(metric))
            status =
                accumulator_group(flush, metric, &flush->groups.list[g], &flush->accumulators[g]);
    return status;
}

static void take_row(struct rollup_flush *flush, const struct rollup_metric *metric, uint32_t row,
                     struct job *job)
{
    const struct rollup_column *columns = flush->groups.memtable->columns;
    const struct rollup_column *column = &columns[metric->formula.columns[0]];
    if (!rollup_column_has(column, row))
        return;
    if (metric->source == ROLLUP_INTEGERS)
        accumulator_add_integer(&job->accumulator, &job->counts,
                                rollup_column_integer(column, row));
    else if (metric->source == ROLLUP_REALS)
        accumulator_add(&job->accumulator, &job->counts, column->reals[row], 1);
    else
        accumulator_block_of_ratios(&job->accumulator, &job->counts, columns, metric,
                                    (struct rows){&row, 1});
}

// ---- Rows ----------------------------------------------------------------------------------

// Counts a step's members, and what finer rows left there.
static void take_members(struct rollup_flush *flush, const struct rollup_metric *metric,
                         const struct rollup_member *members, const struct step *step)
{
    struct job *job = &flush->works[step->level];
    const bool by_row = has_rows(metric);
    for (uint32_t i = 0; i < step->count; i++) {
        const struct rollup_member *member = &members[step->first + i];
        if (by_row && member->row != ROLLUP_NO_ROW)
            take_row(flush, metric, member->row, job);
        else
            accumulator_merge(&job->accumulator, &job->counts, &flush->accumulators[member->group],
                              &flush->pool);
    }
}

// Writes a row that is done.
static enum status end_row(struct rollup_flush *flush, const struct rollup_metric *metric,
                           enum rollup_grouping grouping, const struct step *step,
                           const struct accumulator *accumulator, struct cell_key *damaged,
                           struct error *err)
{
    const enum rollup_level level = (enum rollup_level)step->level;
    if (accumulator->count == 0)
        return STATUS_OK;
    const struct cell_key key = {metric->number, grouping, level, step->bucket, step->series};
    const enum status status =
        rollup_upsert_add(flush->rows, &key, accumulator, &flush->pool, metric->source, err);
    if (status == STATUS_CORRUPT)
        *damaged = key;
    if (status == STATUS_OK && step->coarser != NO_LEVEL)
        accumulator_merge(&flush->works[step->coarser].accumulator,
                          &flush->works[step->coarser].counts, accumulator, &flush->pool);
    return status;
}

static enum status take_step(struct rollup_flush *flush, const struct rollup_metric *metric,
                             enum rollup_grouping grouping, const struct step *step,
                             struct cell_key *damaged, struct error *err)
{
    const struct rollup_member *members = flush->groups.members[grouping];
    if (step->is_whole && (members[step->first].row == ROLLUP_NO_ROW || !has_rows(metric)))
        return end_row(flush, metric, grouping, step,
                       &flush->accumulators[members[step->first].group], damaged, err);
    struct job *job = &flush->works[step->level];
    const size_t used = flush->pool.used;
    take_members(flush, metric, members, step);
    if (!step->ends)
        return STATUS_OK;
    if (accumulator_end(&job->accumulator, &job->counts, &flush->pool) != STATUS_OK)
        return error_no_memory(err, "rollups");
    const enum status status =
        end_row(flush, metric, grouping, step, &job->accumulator, damaged, err);
    job->accumulator = (struct accumulator){0};
    flush->pool.used = used;
    return status;
}

static enum status write_metric(struct rollup_flush *flush, const struct rollup_metric *metric,
                                struct cell_key *damaged, struct error *err)
{
    if (accumulator_groups(flush, metric) != STATUS_OK)
        return error_no_memory(err, "rollups");
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++) {
        const struct steps *steps = &flush->steps[g];
        if (steps->count > 0)
            status = rollup_upsert_begin(flush->rows, metric->number, (enum rollup_grouping)g, err);
        for (size_t i = 0; i < steps->count && status == STATUS_OK; i++)
            status =
                take_step(flush, metric, (enum rollup_grouping)g, &steps->list[i], damaged, err);
    }
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status != STATUS_OK; level++) {
        accumulator_counts_clear(&flush->works[level].counts);
        flush->works[level].accumulator = (struct accumulator){0};
    }
    return status;
}

enum status rollup_flush_write(struct rollup_flush *flush, const struct rollup_scope *scope,
                               struct cell_key *damaged, struct error *err)
{
    const struct rollup_metrics *metrics = rollup_metrics_of(flush->groups.memtable->kind);
    *damaged = (struct cell_key){0};
    enum status status = make_plan(flush, scope, err);
    for (unsigned m = 0; m < metrics->count && status == STATUS_OK; m++)
        status = write_metric(flush, &metrics->list[m], damaged, err);
    return status;
}
