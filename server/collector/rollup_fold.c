#include "server/collector/rollup_fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/cell.h"
#include "common/store/database.h"
#include "server/collector/rollup_series.h"
#include "server/collector/rollup_tally.h"

// The records of one full series in one minute.
struct minute_group {
    int64_t minute;
    uint32_t series;       // of the sheet
    uint32_t first, count; // in `order`
};

// A group as one grouping sees it.
struct member {
    int64_t series, minute; // the series' id in the grouping
    uint32_t group;
};

// Values of one series in one bucket.
struct part {
    int64_t series, bucket;
    struct tally tally;
};

struct parts {
    struct part *list;
    size_t count, room;
};

struct rollup_fold {
    sqlite3 *db;
    sqlite3_stmt *find, *insert, *update;
    struct series_ids *ids;
    struct tally_pool *pool;
    struct ratio cell;    // the row at work
    struct sketch *spans; // of a record of sketches
    struct parts levels[2];

    const struct rollup_sheet *sheet; // NULL: none at work
    uint32_t *order;                  // its rows by group
    struct minute_group *groups;
    size_t group_count, group_room;
    struct member *members[ROLLUP_GROUPING_COUNT]; // sorted by series and minute
    double *numerators, *denominators;             // of the metric at work, by row
    uint8_t *has;
    struct tally *tallies; // of the metric at work, by group
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

enum status rollup_fold_new(struct rollup_fold **out, sqlite3 *db, struct error *err)
{
    static const char key[] =
        " WHERE metric = ?1 AND grouping = ?2 AND level = ?3 AND started_ns = ?4 AND series = ?5";
    char find[256], update[512];
    (void)snprintf(find, sizeof find, "SELECT " CELL_COLUMNS " FROM rollup%s", key);
    (void)snprintf(update, sizeof update,
                   "UPDATE rollup SET (" CELL_COLUMNS ") = (?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)%s",
                   key);
    struct rollup_fold *fold = calloc(1, sizeof *fold);
    if (!fold)
        return out_of_memory(err);
    fold->db = db;
    enum status status = STATUS_OK;
    if (tally_pool_new(&fold->pool) != STATUS_OK || sketch_new(&fold->spans) != STATUS_OK ||
        aggregate_want_quantiles(&fold->cell.values, NULL) != STATUS_OK)
        status = out_of_memory(err);
    if (status == STATUS_OK)
        status = series_ids_new(&fold->ids, db, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &fold->find, find, true, err);
    if (status == STATUS_OK)
        status =
            database_prepare(db, &fold->insert,
                             "INSERT INTO rollup(metric, grouping, level, started_ns, series,"
                             " " CELL_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             true, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &fold->update, update, true, err);
    if (status != STATUS_OK) {
        rollup_fold_free(fold);
        return status;
    }
    *out = fold;
    return STATUS_OK;
}

static void free_array(void *array)
{
    void *memory;
    memcpy(&memory, array, sizeof memory);
    free(memory);
    memset(array, 0, sizeof memory);
}

void rollup_fold_end(struct rollup_fold *fold)
{
    fold->sheet = NULL;
    free_array(&fold->order);
    free_array(&fold->groups);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        free_array(&fold->members[g]);
    free_array(&fold->numerators);
    free_array(&fold->denominators);
    free_array(&fold->has);
    free_array(&fold->tallies);
    for (size_t i = 0; i < 2; i++) {
        free(fold->levels[i].list);
        fold->levels[i] = (struct parts){0};
    }
    fold->group_count = fold->group_room = 0;
}

void rollup_fold_free(struct rollup_fold *fold)
{
    if (!fold)
        return;
    rollup_fold_end(fold);
    (void)sqlite3_finalize(fold->find);
    (void)sqlite3_finalize(fold->insert);
    (void)sqlite3_finalize(fold->update);
    series_ids_free(fold->ids);
    tally_pool_free(fold->pool);
    sketch_free(fold->spans);
    aggregate_deinit(&fold->cell.values);
    free(fold);
}

void rollup_fold_forget(struct rollup_fold *fold)
{
    rollup_fold_end(fold);
    series_ids_forget(fold->ids);
}

// ---- Groups ----------------------------------------------------------------------------

static size_t hash_group(uint32_t series, int64_t minute)
{
    uint64_t hash = ((uint64_t)minute ^ series) * UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 33;
    return (size_t)((hash + series) * UINT64_C(0xc4ceb9fe1a85ec53) >> 20);
}

static bool add_group(struct rollup_fold *fold, uint32_t series, int64_t minute)
{
    if (fold->group_count == fold->group_room) {
        const size_t room = fold->group_room ? 2 * fold->group_room : 64;
        struct minute_group *bigger = realloc(fold->groups, room * sizeof *bigger);
        if (!bigger)
            return false;
        fold->groups = bigger;
        fold->group_room = room;
    }
    fold->groups[fold->group_count++] = (struct minute_group){.series = series, .minute = minute};
    return true;
}

// Names each row's group in `of`; `places` is a hash table of twice as many places, a
// power of two, zeroed.
static bool name_groups(struct rollup_fold *fold, uint32_t *of, uint32_t *places, size_t size)
{
    const struct rollup_sheet *sheet = fold->sheet;
    uint32_t group = 0;
    int64_t minute = 0;
    for (size_t row = 0; row < sheet->count; row++) {
        const int64_t started = sheet->started_ns[row];
        const bool same_minute =
            row > 0 && started >= minute && started < rollup_next(ROLLUP_MINUTE, minute);
        if (!same_minute)
            minute = rollup_bucket(ROLLUP_MINUTE, started);
        if (!same_minute || fold->groups[group].series != sheet->series[row]) {
            size_t place = hash_group(sheet->series[row], minute) & (size - 1);
            while (places[place] && (fold->groups[places[place] - 1].series != sheet->series[row] ||
                                     fold->groups[places[place] - 1].minute != minute))
                place = (place + 1) & (size - 1);
            if (!places[place]) {
                if (!add_group(fold, sheet->series[row], minute))
                    return false;
                places[place] = (uint32_t)fold->group_count;
            }
            group = places[place] - 1;
        }
        of[row] = group;
        fold->groups[group].count++;
    }
    return true;
}

// Rows by group, in their order within each.
static enum status sort_rows(struct rollup_fold *fold)
{
    const size_t count = fold->sheet->count;
    size_t size = 64;
    while (size < 2 * count)
        size *= 2;
    uint32_t *of = calloc(count ? count : 1, sizeof *of);
    uint32_t *places = calloc(size, sizeof *places);
    fold->order = calloc(count ? count : 1, sizeof *fold->order);
    const bool done = of && places && fold->order && name_groups(fold, of, places, size);
    uint32_t first = 0;
    for (size_t g = 0; done && g < fold->group_count; g++) {
        fold->groups[g].first = first;
        first += fold->groups[g].count;
        fold->groups[g].count = 0;
    }
    for (size_t row = 0; done && row < count; row++) {
        struct minute_group *group = &fold->groups[of[row]];
        fold->order[group->first + group->count++] = (uint32_t)row;
    }
    free(of);
    free(places);
    return done ? STATUS_OK : STATUS_NOMEM;
}

static int by_series(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    if (left->series != right->series)
        return left->series < right->series ? -1 : 1;
    if (left->minute != right->minute)
        return left->minute < right->minute ? -1 : 1;
    return (left->group > right->group) - (left->group < right->group);
}

// The groups as a grouping sees them.
static enum status make_members(struct rollup_fold *fold, enum rollup_grouping grouping,
                                struct error *err)
{
    const struct rollup_sheet *sheet = fold->sheet;
    int64_t *ids = calloc(sheet->series_count ? sheet->series_count : 1, sizeof *ids);
    struct member *members = calloc(fold->group_count ? fold->group_count : 1, sizeof *members);
    fold->members[grouping] = members;
    enum status status = ids && members ? STATUS_OK : out_of_memory(err);
    for (size_t i = 0; i < sheet->series_count && status == STATUS_OK; i++)
        status = series_ids_find(fold->ids, grouping, sheet->list[i], &ids[i], err);
    for (size_t i = 0; i < fold->group_count && status == STATUS_OK; i++)
        members[i] =
            (struct member){ids[fold->groups[i].series], fold->groups[i].minute, (uint32_t)i};
    free(ids);
    if (status == STATUS_OK)
        qsort(members, fold->group_count, sizeof *members, by_series);
    return status;
}

enum status rollup_fold_begin(struct rollup_fold *fold, const struct rollup_sheet *sheet,
                              struct error *err)
{
    rollup_fold_end(fold);
    fold->sheet = sheet;
    const size_t rows = sheet->count ? sheet->count : 1;
    fold->numerators = calloc(rows, sizeof *fold->numerators);
    fold->denominators = calloc(rows, sizeof *fold->denominators);
    fold->has = calloc(rows, sizeof *fold->has);
    enum status status = STATUS_OK;
    if (!fold->numerators || !fold->denominators || !fold->has || sort_rows(fold) != STATUS_OK)
        status = out_of_memory(err);
    if (status == STATUS_OK) {
        fold->tallies = calloc(fold->group_count ? fold->group_count : 1, sizeof *fold->tallies);
        status = fold->tallies ? STATUS_OK : out_of_memory(err);
    }
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = make_members(fold, (enum rollup_grouping)g, err);
    if (status != STATUS_OK)
        rollup_fold_end(fold);
    return status;
}

void rollup_fold_each(const struct rollup_fold *fold, enum rollup_grouping grouping,
                      enum rollup_level level, rollup_fold_take *take, void *context)
{
    const struct member *members = fold->members[grouping];
    size_t i = 0;
    while (i < fold->group_count) {
        const int64_t bucket = rollup_bucket(level, members[i].minute);
        const int64_t series = members[i].series;
        size_t records = 0;
        for (; i < fold->group_count && members[i].series == series &&
               rollup_bucket(level, members[i].minute) == bucket;
             i++)
            records += fold->groups[members[i].group].count;
        take(context, bucket, records);
    }
}

// ---- Values of a metric by group -----------------------------------------------------------

// Computes a derived metric's values for all rows.
static void compute_ratios(struct rollup_fold *fold, const struct rollup_metric *metric)
{
    const struct rollup_column *inputs[ROLLUP_INPUTS_MAX] = {0};
    for (unsigned i = 0; i < metric->column_count; i++)
        inputs[i] = &fold->sheet->columns[metric->columns[i]];
    for (size_t row = 0; row < fold->sheet->count; row++) {
        int64_t values[ROLLUP_INPUTS_MAX] = {0};
        bool has = true;
        for (unsigned i = 0; i < metric->column_count; i++) {
            has = has && inputs[i]->has[row];
            values[i] = has ? inputs[i]->integers[row] : 0;
        }
        fold->has[row] =
            has && metric->formula(values, &fold->numerators[row], &fold->denominators[row]);
    }
}

// A fold and the tally that a sketch's buckets go to.
struct taking {
    struct tally *tally;
    struct tally_pool *pool;
};

static void take_bucket(void *context, double value, uint64_t count)
{
    const struct taking *taking = context;
    tally_add(taking->tally, taking->pool, value, count);
}

// What a record's sketch may count: a sum of them stays far below 64 bits.
#define SKETCH_COUNT_MAX (UINT64_C(1) << 40)

// Sketches that are none have no values.
static void tally_sketches(struct rollup_fold *fold, struct tally *tally,
                           const struct tally_rows *rows, const struct rollup_column *column)
{
    struct taking taking = {tally, fold->pool};
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t row = rows->list[i];
        if (!rows->has[row])
            continue;
        const struct rollup_blob blob = column->blobs[row];
        sketch_reset(fold->spans);
        if (sketch_decode(fold->spans, fold->sheet->bytes + blob.at, blob.size) == STATUS_OK &&
            sketch_count(fold->spans) <= SKETCH_COUNT_MAX)
            sketch_each(fold->spans, take_bucket, &taking);
    }
}

static enum status tally_group(struct rollup_fold *fold, const struct rollup_target *target,
                               const struct minute_group *group, struct tally *tally)
{
    const struct rollup_metric *metric = target->metric;
    const struct rollup_column *column = &fold->sheet->columns[metric->columns[0]];
    struct tally_rows rows = {fold->order + group->first, group->count,
                              metric->source == ROLLUP_RATIOS ? fold->has : column->has};
    while (rows.count > 0 && rows.list[0] < target->first_row) {
        rows.list++; // they rise
        rows.count--;
    }
    *tally = (struct tally){0};
    switch (metric->source) {
    case ROLLUP_INTEGERS:
        tally_integers(tally, fold->pool, &rows, column->integers);
        break;
    case ROLLUP_REALS:
        tally_reals(tally, fold->pool, &rows, column->reals);
        break;
    case ROLLUP_RATIOS:
        tally_ratios(tally, fold->pool, &rows, fold->numerators, fold->denominators);
        break;
    case ROLLUP_SKETCHES:
        tally_sketches(fold, tally, &rows, column);
        break;
    }
    return tally_end(tally, fold->pool);
}

static enum status tally_groups(struct rollup_fold *fold, const struct rollup_target *target)
{
    tally_pool_clear(fold->pool);
    if (target->metric->source == ROLLUP_RATIOS)
        compute_ratios(fold, target->metric);
    enum status status = STATUS_OK;
    for (size_t g = 0; g < fold->group_count && status == STATUS_OK; g++)
        status = tally_group(fold, target, &fold->groups[g], &fold->tallies[g]);
    return status;
}

// ---- Rows ----------------------------------------------------------------------------------

static void bind_key(sqlite3_stmt *stmt, const struct cell_key *key)
{
    (void)sqlite3_bind_int(stmt, 1, key->metric);
    (void)sqlite3_bind_int(stmt, 2, (int)key->grouping);
    (void)sqlite3_bind_int(stmt, 3, (int)key->level);
    (void)sqlite3_bind_int64(stmt, 4, key->started_ns);
    (void)sqlite3_bind_int64(stmt, 5, key->series);
}

// Adds what the row has already to the cell at work.
static enum status read_row(struct rollup_fold *fold, const struct cell_key *key, bool *found,
                            struct error *err)
{
    bind_key(fold->find, key);
    const int rc = sqlite3_step(fold->find);
    *found = rc == SQLITE_ROW;
    enum status status = STATUS_OK;
    if (*found)
        status = cell_add(&fold->cell, key, fold->find, 0, err);
    else if (rc != SQLITE_DONE)
        status = database_error(fold->db, "rollups", err);
    (void)sqlite3_reset(fold->find);
    return status;
}

static bool is_real(const struct rollup_metric *metric)
{
    return metric->source != ROLLUP_INTEGERS;
}

static enum status write_row(struct rollup_fold *fold, const struct rollup_target *target,
                             const struct cell_key *key, const struct tally *tally,
                             struct error *err)
{
    bool found = false;
    tally_to_ratio(tally, fold->pool, is_real(target->metric), &fold->cell);
    enum status status = read_row(fold, key, &found, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_stmt *stmt = found ? fold->update : fold->insert;
    bind_key(stmt, key);
    status = cell_bind(stmt, 6, key, &fold->cell, target->metric->source == ROLLUP_RATIOS, err);
    if (status == STATUS_OK)
        status = database_run(fold->db, stmt, err);
    return status;
}

// ---- Levels ----------------------------------------------------------------------------------

static struct part *add_part(struct parts *parts)
{
    if (parts->count == parts->room) {
        const size_t room = parts->room ? 2 * parts->room : 64;
        struct part *bigger = realloc(parts->list, room * sizeof *bigger);
        if (!bigger)
            return NULL;
        parts->list = bigger;
        parts->room = room;
    }
    return &parts->list[parts->count++];
}

// Adds a part for `count` tallies, of which a single one is the sum already.
static enum status add_sum(struct parts *parts, int64_t series, int64_t bucket,
                           const struct tally *only, size_t count)
{
    struct part *part = add_part(parts);
    if (!part)
        return STATUS_NOMEM;
    *part = (struct part){.series = series, .bucket = bucket};
    if (count == 1)
        part->tally = *only;
    return STATUS_OK;
}

// The minutes of a grouping.
static enum status sum_members(struct rollup_fold *fold, enum rollup_grouping grouping,
                               struct parts *out)
{
    const struct member *members = fold->members[grouping];
    enum status status = STATUS_OK;
    out->count = 0;
    for (size_t i = 0, end; i < fold->group_count && status == STATUS_OK; i = end) {
        end = i + 1;
        while (end < fold->group_count && members[end].series == members[i].series &&
               members[end].minute == members[i].minute)
            end++;
        status = add_sum(out, members[i].series, members[i].minute,
                         &fold->tallies[members[i].group], end - i);
        if (status != STATUS_OK || end - i == 1)
            continue;
        struct tally *tally = &out->list[out->count - 1].tally;
        for (size_t k = i; k < end; k++)
            tally_merge(tally, fold->pool, &fold->tallies[members[k].group]);
        status = tally_end(tally, fold->pool);
    }
    return status;
}

// The buckets of a level from those of the finer one.
static enum status sum_parts(struct rollup_fold *fold, enum rollup_level level,
                             const struct parts *in, struct parts *out)
{
    enum status status = STATUS_OK;
    out->count = 0;
    for (size_t i = 0, end; i < in->count && status == STATUS_OK; i = end) {
        const struct part *first = &in->list[i];
        const int64_t bucket = rollup_bucket(level, first->bucket);
        end = i + 1;
        while (end < in->count && in->list[end].series == first->series &&
               rollup_bucket(level, in->list[end].bucket) == bucket)
            end++;
        status = add_sum(out, first->series, bucket, &first->tally, end - i);
        if (status != STATUS_OK || end - i == 1)
            continue;
        struct tally *tally = &out->list[out->count - 1].tally;
        for (size_t k = i; k < end; k++)
            tally_merge(tally, fold->pool, &in->list[k].tally);
        status = tally_end(tally, fold->pool);
    }
    return status;
}

static enum status write_parts(struct rollup_fold *fold, const struct rollup_target *target,
                               enum rollup_grouping grouping, enum rollup_level level,
                               const struct parts *parts, struct gap_span *damaged,
                               struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < parts->count && status == STATUS_OK; i++) {
        const struct part *part = &parts->list[i];
        const int64_t next = rollup_next(level, part->bucket);
        if (part->tally.count == 0 ||
            gap_set_touches(&target->gaps[grouping], level, part->bucket, next))
            continue;
        const struct cell_key key = {target->metric->number, grouping, level, part->bucket,
                                     part->series};
        status = write_row(fold, target, &key, &part->tally, err);
        if (status == STATUS_CORRUPT)
            *damaged = (struct gap_span){part->bucket, next};
    }
    return status;
}

static enum status fold_grouping(struct rollup_fold *fold, const struct rollup_target *target,
                                 enum rollup_grouping grouping, struct gap_span *damaged,
                                 struct error *err)
{
    struct parts *in = &fold->levels[0], *out = &fold->levels[1];
    if (sum_members(fold, grouping, out) != STATUS_OK)
        return out_of_memory(err);
    enum status status = STATUS_OK;
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++) {
        if (level > 0) {
            struct parts *swap = in;
            in = out;
            out = swap;
            if (sum_parts(fold, (enum rollup_level)level, in, out) != STATUS_OK)
                return out_of_memory(err);
        }
        if (target->levels & 1U << level)
            status =
                write_parts(fold, target, grouping, (enum rollup_level)level, out, damaged, err);
    }
    return status;
}

enum status rollup_fold_metric(struct rollup_fold *fold, const struct rollup_target *target,
                               struct gap_span *damaged, struct error *err)
{
    *damaged = (struct gap_span){0};
    if (tally_groups(fold, target) != STATUS_OK)
        return out_of_memory(err);
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        if (target->groupings & 1U << g)
            status = fold_grouping(fold, target, (enum rollup_grouping)g, damaged, err);
    return status;
}
