#include "server/collector/rollup/rollup_flush.h"

#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/sqlite/database.h"

// The values of one metric in a group; the sketch is encoded, from `first` in the bytes on.
struct cell {
    struct ratio sums;
    size_t first, size;
};

// The members of some hosts; the arrays are NULL until the first choice: all are chosen.
struct chosen {
    int64_t *hosts; // of each group, rising
    struct rollup_member *members[ROLLUP_GROUPING_COUNT];
    size_t count;
};

struct rollup_flush {
    sqlite3 *db;
    sqlite3_stmt *find, *put, *find_series, *insert_series;
    struct rollup_groups groups; // of the slice
    struct chosen chosen;        // of them
    struct cell *cells;          // [group]
    unsigned char *bytes;
    size_t bytes_used, bytes_room;
    struct ratio sum;      // the group or row that is being computed
    struct sketch *values; // of that
    struct sketch *sketch; // a record's
};

static enum status prepare(struct rollup_flush *flush, struct error *err)
{
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } all[] = {
        {&flush->find, "SELECT " ROLLUP_ROW_COLUMNS " FROM rollup WHERE metric = ? AND grouping = ?"
                       " AND level = ? AND started_ns = ? AND series = ?"},
        {&flush->put, "INSERT OR REPLACE INTO rollup(metric, grouping, level, started_ns, series,"
                      " " ROLLUP_ROW_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
        {&flush->find_series, "SELECT id FROM series WHERE grouping = ? AND model = ?"
                              " AND host = ? AND device = ? AND operation = ?"},
        {&flush->insert_series, "INSERT INTO series(grouping, model, host, device, operation)"
                                " VALUES(?, ?, ?, ?, ?)"},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == STATUS_OK; i++)
        status = database_prepare(flush->db, all[i].stmt, all[i].sql, true, err);
    return status;
}

enum status rollup_flush_new(struct rollup_flush **out, sqlite3 *db, struct error *err)
{
    struct rollup_flush *flush = calloc(1, sizeof *flush);
    if (!flush)
        return error_no_memory(err, "rollups");
    flush->db = db;
    enum status status = STATUS_OK;
    if (sketch_new(&flush->sketch) != STATUS_OK || sketch_new(&flush->values) != STATUS_OK)
        status = error_no_memory(err, "rollups");
    if (status == STATUS_OK)
        status = prepare(flush, err);
    if (status != STATUS_OK) {
        rollup_flush_free(flush);
        return status;
    }
    *out = flush;
    return STATUS_OK;
}

void rollup_flush_end(struct rollup_flush *flush)
{
    struct rollup_groups *groups = &flush->groups;
    free(groups->order);
    key_index_deinit(&groups->index);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        free(groups->members[g]);
    *groups = (struct rollup_groups){0};
    free(flush->chosen.hosts);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        free(flush->chosen.members[g]);
    flush->chosen = (struct chosen){0};
    free(flush->cells);
    free(flush->bytes);
    flush->cells = NULL;
    flush->bytes = NULL;
    flush->bytes_room = 0;
}

void rollup_flush_free(struct rollup_flush *flush)
{
    if (!flush)
        return;
    rollup_flush_end(flush);
    sqlite3_stmt *const all[] = {flush->find, flush->put, flush->find_series, flush->insert_series};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        (void)sqlite3_finalize(all[i]);
    sketch_free(flush->values);
    sketch_free(flush->sketch);
    free(flush);
}

const struct rollup_groups *rollup_flush_groups(const struct rollup_flush *flush)
{
    return &flush->groups;
}

// ---- Groups ----------------------------------------------------------------------------------

static size_t sketches_size(const struct rollup_memtable *memtable, size_t row)
{
    size_t size = 0;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX && memtable->bytes_used > 0; c++) {
        const struct rollup_column *column = &memtable->columns[c];
        if (column->used && column->source == ROLLUP_SKETCHES && column->has[row])
            size += column->blobs[row].size;
    }
    return size;
}

// Numbers the groups of the slice's rows, `of` from its first row on, until it ends.
static enum status name_groups(struct rollup_groups *groups, const struct rollup_slice *slice,
                               uint32_t *of)
{
    const struct rollup_memtable *memtable = slice->memtable;
    const size_t groups_most = slice->groups_most ? slice->groups_most : UINT32_MAX;
    const size_t bytes_most = slice->bytes_most ? slice->bytes_most : SIZE_MAX;
    const size_t rows = memtable->count - slice->first_row;
    const size_t end_row = slice->rows_most && slice->rows_most < rows
                               ? slice->first_row + slice->rows_most
                               : memtable->count;
    int64_t minute = 0, next = INT64_MIN;
    size_t group = 0, bytes = 0, row = slice->first_row;
    for (; row < end_row && bytes < bytes_most; row++) {
        const int64_t started = memtable->started_ns[row];
        const bool same_minute = started >= minute && started < next;
        if (!same_minute) {
            minute = rollup_bucket(ROLLUP_MINUTE, started);
            next = rollup_next(ROLLUP_MINUTE, minute);
        }
        if (!same_minute || memtable->series[row] != memtable->series[row - 1]) {
            const int64_t key[] = {memtable->series[row], minute};
            if (groups->index.count == groups_most && !key_index_find(&groups->index, key, &group))
                break;
            if (key_index_add(&groups->index, key, &group) != STATUS_OK)
                return STATUS_NOMEM;
        }
        of[row - slice->first_row] = (uint32_t)group;
        bytes += sketches_size(memtable, row);
    }
    groups->end_row = row;
    return STATUS_OK;
}

// Puts the rows into the order of their groups, and sets where in it each group ends.
static enum status sort_rows(struct rollup_groups *groups, const struct rollup_slice *slice,
                             uint32_t **ends)
{
    uint32_t *of = calloc(slice->memtable->count - slice->first_row + 1, sizeof *of);
    enum status status = of ? name_groups(groups, slice, of) : STATUS_NOMEM;
    const size_t rows = groups->end_row - groups->first_row;
    groups->order = calloc(rows + 1, sizeof *groups->order);
    *ends = calloc(groups->index.count + 1, sizeof **ends);
    if (!groups->order || !*ends)
        status = STATUS_NOMEM;
    for (size_t row = 0; row < rows && status == STATUS_OK; row++)
        (*ends)[of[row] + 1]++;
    for (size_t g = 0; g < groups->index.count && status == STATUS_OK; g++)
        (*ends)[g + 1] += (*ends)[g];
    for (size_t row = 0; row < rows && status == STATUS_OK; row++)
        groups->order[(*ends)[of[row]]++] = (uint32_t)(groups->first_row + row);
    free(of);
    return status;
}

static int by_series(const void *a, const void *b)
{
    const struct rollup_member *left = a, *right = b;
    if (left->series != right->series)
        return left->series < right->series ? -1 : 1;
    if (left->minute != right->minute)
        return left->minute < right->minute ? -1 : 1;
    return (left->group > right->group) - (left->group < right->group);
}

// The id of a series of a grouping; inserts it if there is none.
static enum status find_series(struct rollup_flush *flush, enum rollup_grouping grouping,
                               struct rollup_series series, int64_t *id, struct error *err)
{
    const int64_t key[] = {(int64_t)grouping, series.model, series.host, series.device,
                           series.operation};
    database_bind(flush->find_series, key, 5);
    const int rc = sqlite3_step(flush->find_series);
    *id = rc == SQLITE_ROW ? sqlite3_column_int64(flush->find_series, 0) : 0;
    enum status status = rc == SQLITE_ROW || rc == SQLITE_DONE
                             ? STATUS_OK
                             : database_error(flush->db, "rollups", err);
    (void)sqlite3_reset(flush->find_series);
    if (rc != SQLITE_DONE)
        return status;
    database_bind(flush->insert_series, key, 5);
    status = database_run(flush->db, flush->insert_series, err);
    *id = sqlite3_last_insert_rowid(flush->db);
    return status;
}

// The groups as a grouping sees them.
static enum status make_members(struct rollup_flush *flush, enum rollup_grouping grouping,
                                const uint32_t *ends, struct error *err)
{
    struct rollup_groups *groups = &flush->groups;
    const struct rollup_memtable *memtable = groups->memtable;
    int64_t *ids = calloc(memtable->full_series.count + 1, sizeof *ids);
    struct rollup_member *members = calloc(groups->index.count + 1, sizeof *members);
    groups->members[grouping] = members;
    enum status status = ids && members ? STATUS_OK : error_no_memory(err, "rollups");
    struct rollup_series before = {-1, -1, -1, -1};
    int64_t before_id = 0;
    for (size_t i = 0; i < groups->index.count && status == STATUS_OK; i++) {
        const size_t number = (size_t)groups->index.keys[2 * i];
        const struct rollup_series full = rollup_memtable_series(memtable, number);
        const struct rollup_series series = rollup_series_in(grouping, full);
        if (ids[number] == 0 && memcmp(&series, &before, sizeof series) != 0)
            status = find_series(flush, grouping, series, &before_id, err);
        else if (ids[number] != 0)
            before_id = ids[number];
        before = series;
        ids[number] = before_id;
        const uint32_t first = i ? ends[i - 1] : 0;
        members[i] = (struct rollup_member){before_id,   groups->index.keys[2 * i + 1],
                                            first,       ends[i] - first,
                                            (uint32_t)i, full.host};
    }
    free(ids);
    if (status == STATUS_OK)
        qsort(members, groups->index.count, sizeof *members, by_series);
    return status;
}

enum status rollup_flush_begin(struct rollup_flush *flush, const struct rollup_slice *slice,
                               struct error *err)
{
    uint32_t *ends = NULL;
    rollup_flush_end(flush);
    flush->groups = (struct rollup_groups){.memtable = slice->memtable,
                                           .first_row = slice->first_row,
                                           .end_row = slice->first_row,
                                           .index = {.width = 2}};
    enum status status = sort_rows(&flush->groups, slice, &ends);
    if (status != STATUS_OK)
        status = error_no_memory(err, "rollups");
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = make_members(flush, (enum rollup_grouping)g, ends, err);
    free(ends);
    if (status != STATUS_OK)
        rollup_flush_end(flush);
    return status;
}

// ---- Some hosts ------------------------------------------------------------------------------

static const struct rollup_member *members_of(const struct rollup_flush *flush, unsigned grouping)
{
    const struct rollup_member *chosen = flush->chosen.members[grouping];
    return chosen ? chosen : flush->groups.members[grouping];
}

static size_t member_count(const struct rollup_flush *flush)
{
    return flush->chosen.hosts ? flush->chosen.count : flush->groups.index.count;
}

// Allocates what a choice takes, and sorts the groups' hosts.
static bool prepare_choice(struct rollup_flush *flush)
{
    struct chosen *chosen = &flush->chosen;
    const size_t count = flush->groups.index.count;
    if (chosen->hosts)
        return true;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        if (!chosen->members[g] &&
            !(chosen->members[g] = calloc(count + 1, sizeof *chosen->members[g])))
            return false;
    chosen->hosts = calloc(count + 1, sizeof *chosen->hosts);
    for (size_t i = 0; i < count && chosen->hosts; i++)
        chosen->hosts[i] = flush->groups.members[ROLLUP_FULL][i].host;
    if (chosen->hosts)
        qsort(chosen->hosts, count, sizeof *chosen->hosts, array_compare_first);
    return chosen->hosts;
}

int64_t rollup_flush_choose(struct rollup_flush *flush, int64_t after, size_t groups_most)
{
    struct chosen *chosen = &flush->chosen;
    const size_t count = flush->groups.index.count;
    size_t first = 0;
    if (!prepare_choice(flush))
        return INT64_MIN;
    while (first < count && chosen->hosts[first] <= after)
        first++;
    int64_t until = INT64_MAX;
    if (count - first > groups_most &&
        chosen->hosts[first + groups_most - 1] < chosen->hosts[count - 1])
        until = chosen->hosts[first + groups_most - 1];
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
        chosen->count = 0;
        for (size_t i = 0; i < count; i++) {
            const struct rollup_member *member = &flush->groups.members[g][i];
            if (member->host > after && member->host <= until)
                chosen->members[g][chosen->count++] = *member;
        }
    }
    return until;
}

// ---- Values of a metric by group -----------------------------------------------------------

static void reset_sum(struct rollup_flush *flush)
{
    flush->sum = (struct ratio){0};
    if (!rollup_has_sketches(flush->groups.memtable->kind))
        return;
    sketch_reset(flush->values);
    flush->sum.values.sketch = flush->values;
}

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

static void add_values(struct rollup_flush *flush, const struct ratio *sums, const double *values)
{
    ratio_merge(&flush->sum, sums);
    if (flush->sum.values.sketch)
        sketch_add_values(flush->sum.values.sketch, values, sums->values.count);
}

static void add_integers(struct rollup_flush *flush, const struct rollup_column *column,
                         struct rows rows)
{
    double reals[ROLLUP_BLOCK];
    __extension__ __int128 sum = 0;
    int64_t min = INT64_MAX, max = INT64_MIN;
    for (size_t i = 0; i < rows.count; i++) {
        const int64_t value = column->integers[rows.list[i]];
        sum += value;
        min = value < min ? value : min;
        max = value > max ? value : max;
        reals[i] = (double)value;
    }
    const struct ratio sums = {.values = {.count = rows.count,
                                          .integers = sum,
                                          .min_integer = min,
                                          .max_integer = max,
                                          .min = (double)min,
                                          .max = (double)max}};
    add_values(flush, &sums, reals);
}

static void add_ratios(struct rollup_flush *flush, const struct rollup_metric *metric,
                       struct rows rows)
{
    const struct rollup_column *columns = flush->groups.memtable->columns;
    int64_t inputs[ROLLUP_INPUTS_MAX][ROLLUP_BLOCK];
    double numerators[ROLLUP_BLOCK], denominators[ROLLUP_BLOCK], values[ROLLUP_BLOCK];
    uint32_t rooms[2][ROLLUP_BLOCK];
    for (unsigned i = 0; i < metric->column_count; i++)
        rows = rows_with(&columns[metric->columns[i]], rows, rooms[i % 2]);
    for (unsigned i = 0; i < metric->column_count; i++)
        for (size_t row = 0; row < rows.count; row++)
            inputs[i][row] = columns[metric->columns[i]].integers[rows.list[row]];
    const size_t count = rollup_metric_ratios(metric, inputs, rows.count, numerators, denominators);
    struct real_sum value_sum = {0, 0}, above = {0, 0}, below = {0, 0};
    double min = (double)INFINITY, max = (double)-INFINITY;
    for (size_t i = 0; i < count; i++) {
        const double value = numerators[i] / denominators[i];
        values[i] = value;
        min = value < min ? value : min;
        max = value > max ? value : max;
        real_sum_add(&value_sum, value);
        real_sum_add(&above, numerators[i]);
        real_sum_add(&below, denominators[i]);
    }
    const struct ratio sums = {
        .values = {.count = count, .has_reals = true, .reals = value_sum, .min = min, .max = max},
        .numerator = above,
        .denominator = below};
    add_values(flush, &sums, values);
}

static void add_block(struct rollup_flush *flush, const struct rollup_metric *metric,
                      struct rows rows)
{
    const struct rollup_memtable *memtable = flush->groups.memtable;
    const struct rollup_column *column = &memtable->columns[metric->columns[0]];
    struct aggregate *values = &flush->sum.values;
    uint32_t room[ROLLUP_BLOCK];
    const struct rows with = rows_with(column, rows, room);
    switch (metric->source) {
    case ROLLUP_INTEGERS:
        add_integers(flush, column, with);
        break;
    case ROLLUP_REALS:
        for (size_t i = 0; i < with.count; i++)
            aggregate_add_real(values, column->reals[with.list[i]]);
        break;
    case ROLLUP_RATIOS:
        add_ratios(flush, metric, rows);
        break;
    case ROLLUP_SKETCHES:
        for (size_t i = 0; i < with.count; i++) {
            const struct rollup_blob blob = column->blobs[with.list[i]];
            aggregate_add_encoded(values, flush->sketch, memtable->bytes + blob.at, blob.size);
        }
        break;
    }
}

static enum status aggregate_group(struct rollup_flush *flush, const struct rollup_metric *metric,
                                   const struct rollup_member *group)
{
    const uint32_t *row = flush->groups.order + group->first, *const end = row + group->count;
    struct cell *cell = &flush->cells[group->group];
    reset_sum(flush);
    while (row < end) {
        const struct rows rows = {row,
                                  end - row < ROLLUP_BLOCK ? (size_t)(end - row) : ROLLUP_BLOCK};
        add_block(flush, metric, rows);
        row += rows.count;
    }
    *cell = (struct cell){.sums = flush->sum, .first = flush->bytes_used};
    cell->sums.values.sketch = NULL;
    if (cell->sums.values.count == 0 || !flush->sum.values.sketch)
        return STATUS_OK;
    if (!ARRAY_RESERVE(&flush->bytes, &flush->bytes_room, flush->bytes_used + SKETCH_SIZE_MAX))
        return STATUS_NOMEM;
    cell->size = sketch_encode_whole(flush->sum.values.sketch, flush->bytes + flush->bytes_used,
                                     SKETCH_SIZE_MAX);
    flush->bytes_used += cell->size;
    return cell->size > 0 ? STATUS_OK : STATUS_NOMEM;
}

static enum status aggregate_groups(struct rollup_flush *flush, const struct rollup_metric *metric)
{
    enum status status = STATUS_OK;
    flush->bytes_used = 0;
    for (size_t i = 0; i < member_count(flush) && status == STATUS_OK; i++)
        status = aggregate_group(flush, metric, &members_of(flush, ROLLUP_FULL)[i]);
    return status;
}

// ---- Rows ----------------------------------------------------------------------------------

// Adds the existing row, if any, to the sum.  STATUS_CORRUPT: it is damaged.
static enum status read_row(struct rollup_flush *flush, const struct rollup_row_key *key,
                            const int64_t *numbers, struct error *err)
{
    enum status status = STATUS_OK;
    database_bind(flush->find, numbers, 5);
    const int rc = sqlite3_step(flush->find);
    if (rc == SQLITE_ROW)
        status = rollup_row_add(&flush->sum, key, flush->find, 0, err);
    else if (rc != SQLITE_DONE)
        status = database_error(flush->db, "rollups", err);
    (void)sqlite3_reset(flush->find);
    return status;
}

// Adds members, which are all of a row's, to the row.
static enum status write_row(struct rollup_flush *flush, const struct rollup_metric *metric,
                             const struct rollup_row_key *key, const struct rollup_member *members,
                             size_t count, struct error *err)
{
    const int64_t numbers[] = {key->metric, key->grouping, key->level, key->started_ns,
                               key->series};
    enum status status = STATUS_OK;
    reset_sum(flush);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct cell *cell = &flush->cells[members[i].group];
        ratio_merge(&flush->sum, &cell->sums);
        if (cell->size > 0)
            status = sketch_decode_once(flush->sum.values.sketch, flush->bytes + cell->first,
                                        cell->size);
    }
    if (status != STATUS_OK)
        return error_no_memory(err, "rollups");
    if (flush->sum.values.count == 0)
        return STATUS_OK;
    status = read_row(flush, key, numbers, err);
    database_bind(flush->put, numbers, 5);
    if (status == STATUS_OK)
        status =
            rollup_row_bind(flush->put, 6, key, &flush->sum, metric->source == ROLLUP_RATIOS, err);
    return status == STATUS_OK ? database_run(flush->db, flush->put, err) : status;
}

static enum status write_level(struct rollup_flush *flush, const struct rollup_metric *metric,
                               enum rollup_grouping grouping, enum rollup_level level,
                               const struct gap_set *gaps, struct rollup_row_key *damaged,
                               struct error *err)
{
    const struct rollup_member *members = members_of(flush, grouping);
    const size_t count = member_count(flush);
    enum status status = STATUS_OK;
    size_t end = 0;
    for (size_t first = 0; first < count && status == STATUS_OK; first = end) {
        const int64_t bucket = rollup_bucket(level, members[first].minute);
        const int64_t next = rollup_next(level, bucket);
        const struct rollup_row_key key = {metric->number, grouping, level, bucket,
                                           members[first].series};
        for (end = first + 1;
             end < count && members[end].series == key.series && members[end].minute < next;)
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
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++)
            if (levels & 1U << level)
                status = write_level(flush, metric, (enum rollup_grouping)g,
                                     (enum rollup_level)level, &gaps[g], damaged, err);
    return status;
}

enum status rollup_flush_write(struct rollup_flush *flush, const struct rollup_metric_span *span,
                               unsigned levels, const struct gap_set *gaps,
                               struct rollup_row_key *damaged, struct error *err)
{
    const struct rollup_metrics *metrics = rollup_metrics_of(flush->groups.memtable->kind);
    enum status status = STATUS_OK;
    *damaged = (struct rollup_row_key){0};
    if (!flush->cells)
        flush->cells = calloc(flush->groups.index.count + 1, sizeof *flush->cells);
    if (!flush->cells)
        return error_no_memory(err, "rollups");
    for (unsigned m = span->first; m < span->end && m < metrics->count && status == STATUS_OK; m++)
        status = write_metric(flush, &metrics->list[m], levels, gaps, damaged, err);
    return status;
}
