// The rollups of a plan's pieces, merged into groups.
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/rollup/rollup_row.h"
#include "common/store/aggregate/aggregate_scan_parts.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema.h"

// A series of the grouping that the filter lets through.
struct member {
    int64_t id;
    int64_t keys[QUERY_DIMENSION_COUNT]; // as the query groups
};

struct members {
    struct aggregate_scan_state *state;
    struct member *list; // rising by id
    size_t count, room;
    int64_t all; // series there are, about
    unsigned metric;
    const struct rollup_piece *piece;
};

// The columns of a series; 0: it has none.
static const int columns[QUERY_DIMENSION_COUNT] = {
    [QUERY_BY_MODEL] = 1,
    [QUERY_BY_HOST] = 2,
    [QUERY_BY_DEVICE] = 3,
    [QUERY_BY_OPERATION] = 4,
};

static bool is_wanted(const struct aggregate_scan_state *state, sqlite3_stmt *row)
{
    return state->of->models == AGGREGATE_ALL ||
           (sqlite3_column_int64(row, columns[QUERY_BY_MODEL]) != 0) ==
               (state->of->models == AGGREGATE_WITH_MODEL);
}

static enum status on_series(void *context, sqlite3_stmt *row, struct error *err)
{
    struct members *members = context;
    members->all = sqlite3_column_int64(row, 5);
    if (!is_wanted(members->state, row))
        return STATUS_OK;
    if (!ARRAY_RESERVE(&members->list, &members->room, members->count + 1))
        return error_no_memory(err, "store");
    struct member *member = &members->list[members->count++];
    *member = (struct member){.id = sqlite3_column_int64(row, 0)};
    const struct query *query = members->state->of->query;
    for (unsigned i = 0; i < query->group_count; i++) {
        const int64_t id = sqlite3_column_int64(row, columns[query->group_by[i]]);
        member->keys[i] = id ? id : GROUP_KEY_NONE;
    }
    return STATUS_OK;
}

enum { FIRST_ROW_COLUMN = 2 };

static enum status on_row(void *context, sqlite3_stmt *row, struct error *err)
{
    struct members *members = context;
    struct aggregate_scan_state *state = members->state;
    const struct member *member = array_find(members->list, members->count, sizeof *members->list,
                                             sqlite3_column_int64(row, 1));
    if (!member)
        return STATUS_OK;
    const struct rollup_row_key key = {.metric = state->number[members->metric],
                                       .grouping = state->grouping,
                                       .level = members->piece->level,
                                       .started_ns = sqlite3_column_int64(row, 0),
                                       .series = member->id};
    struct ratio *ratios = NULL;
    enum status status = aggregate_scan_find(state->of, member->keys, key.started_ns, &ratios, err);
    if (status != STATUS_OK)
        return status;
    state->of->sketches++;
    aggregate_scan_see(state->of, key.started_ns, rollup_next(key.level, key.started_ns) - 1);
    status = rollup_row_add(&ratios[members->metric], &key, row, FIRST_ROW_COLUMN, err);
    const enum status budget = reader_budget(&state->of->budget, err);
    return budget == STATUS_OK ? status : budget;
}

// The rows of a bucket lie together, by series.  Of few of many series each row is found by itself:
// a bucket of all 8,000 devices has 8,000 rows of a metric.
enum { SEEK_SHARE = 16, SEEK_BUCKETS_MAX = 4096 };

static bool is_sought(const struct members *members, const struct rollup_piece *piece)
{
    const int64_t bucket = rollup_bucket(piece->level, piece->span.first_ns);
    return (int64_t)members->count < members->all / SEEK_SHARE && bucket == piece->span.first_ns &&
           piece->level != ROLLUP_MONTH &&
           piece->span.last_ns / SEEK_BUCKETS_MAX - bucket / SEEK_BUCKETS_MAX <
               rollup_next(piece->level, bucket) - bucket;
}

static enum status seek_piece(struct members *members, const struct rollup_piece *piece,
                              struct error *err)
{
    const struct aggregate_scan_state *state = members->state;
    const int64_t first_ns = piece->span.first_ns;
    const int64_t of[] = {state->number[members->metric],
                          state->grouping,
                          piece->level,
                          first_ns,
                          piece->span.last_ns,
                          rollup_next(piece->level, first_ns) - first_ns};
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    sqlite3_str_appendall(sql, "WITH RECURSIVE b(t) AS (VALUES($4) UNION ALL SELECT t + $6 FROM b"
                               " WHERE t + $6 <= $5) SELECT started_ns, series, " ROLLUP_ROW_COLUMNS
                               " FROM b CROSS JOIN rollup WHERE metric = $1 AND grouping = $2"
                               " AND level = $3 AND started_ns = b.t"
                               " AND series IN (SELECT value FROM json_each('[");
    for (size_t i = 0; i < members->count; i++)
        sqlite3_str_appendf(sql, "%s%lld", i ? "," : "", (long long)members->list[i].id);
    sqlite3_str_appendall(sql, "]'))");
    return reader_scan_with(state->store, sql, NULL, of, 6, on_row, members, err);
}

static enum status read_piece(struct members *members, const struct rollup_piece *piece,
                              struct error *err)
{
    const struct aggregate_scan_state *state = members->state;
    const int64_t of[] = {state->number[members->metric], state->grouping, piece->level,
                          piece->span.first_ns, piece->span.last_ns};
    members->piece = piece;
    if (is_sought(members, piece))
        return seek_piece(members, piece, err);
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    sqlite3_str_appendall(sql, "SELECT started_ns, series, " ROLLUP_ROW_COLUMNS
                               " FROM rollup WHERE metric = $1 AND grouping = $2 AND level = $3"
                               " AND started_ns BETWEEN $4 AND $5");
    return reader_scan_with(state->store, sql, NULL, of, 5, on_row, members, err);
}

static enum status on_unplaced(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    const struct members *members = context;
    members->state->leaves_out |= array_find(members->list, members->count, sizeof *members->list,
                                             sqlite3_column_int64(row, 0)) != NULL;
    return STATUS_OK;
}

// Finds out whether records with implausible times are left out.
static enum status find_unplaced(struct members *members, struct error *err)
{
    struct aggregate_scan_state *state = members->state;
    const int64_t of[] = {state->number[members->metric], state->grouping, ROLLUP_DAY, ROLLUP_MONTH,
                          SCHEMA_CLOCK_UNPLACED_NS};
    if (state->of->window.first_ns <= SCHEMA_CLOCK_UNPLACED_NS)
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    sqlite3_str_appendall(sql, "SELECT series FROM rollup WHERE metric = $1 AND grouping = $2"
                               " AND level IN ($3, $4) AND started_ns = $5");
    return reader_scan_with(state->store, sql, NULL, of, 5, on_unplaced, members, err);
}

// Without a model to look up, the table is read in the order of its ids: that needs no sorting.
static enum status read_series(struct members *members, struct error *err)
{
    const struct aggregate_scan_state *state = members->state;
    const struct query_filter *filter = &state->of->query->filter;
    const int64_t of[] = {state->grouping};
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT id, model, host, device, operation, (SELECT max(id) FROM series)"
                        " FROM series WHERE %sgrouping = $1",
                        filter->by[QUERY_BY_MODEL][0] ? "" : "+");
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        if (!filter->by[i][0] || columns[i] == 0)
            continue;
        sqlite3_str_appendf(sql, " AND %s", query_dimension_name((enum query_dimension)i));
        filter_append_name(sql, filter, (enum query_dimension)i);
    }
    sqlite3_str_appendall(sql, " ORDER BY id");
    return reader_scan_with(state->store, sql, filter, of, 1, on_series, members, err);
}

static enum status read_metric(struct members *members, struct error *err)
{
    const struct rollup_plan *plan = &members->state->of->plan;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < plan->count && status == STATUS_OK; i++)
        if (!plan->pieces[i].is_raw)
            status = read_piece(members, &plan->pieces[i], err);
    return status == STATUS_OK ? find_unplaced(members, err) : status;
}

enum status aggregate_scan_rollups(struct aggregate_scan_state *state, struct error *err)
{
    struct members members = {.state = state};
    enum status status = read_series(&members, err);
    for (unsigned i = 0; i < state->of->metric_count && members.count && status == STATUS_OK; i++) {
        members.metric = i;
        if (state->watermark[i].id > 0)
            status = read_metric(&members, err);
    }
    free(members.list);
    return status;
}
