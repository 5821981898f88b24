// Copies the sums of expired records into a bundle: nothing else counts these records any
// more.  All other rollups of a bundle are built from its records by the collector that opens
// it; until then queries read the records.
//
// A grouping that merges what the filter separates is made from the coarsest one that keeps
// it apart: over all models, of a filter by model, from the rows by model.  Each end of the
// filter's window is rounded outwards to the finest bucket that the store keeps there.  Gaps
// cover what coarser buckets hold beyond these ends, and the records that no rollup of the
// bundle holds.
#include <sqlite3.h>

#include "common/store/rollup/rollup_row.h"
#include "common/store/transfer/copy.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/filter.h"
#include "common/store/rollup/gap_table.h"

// The dimensions of a grouping, and the condition for its series `x` to hold series `f`.
static const struct {
    unsigned count;
    enum query_dimension dimensions[4];
    const char *holds;
} groupings[ROLLUP_GROUPING_COUNT] = {
    [ROLLUP_FULL] = {4,
                     {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE, QUERY_BY_OPERATION},
                     "x.id = f.id"},
    [ROLLUP_MODEL] = {1,
                      {QUERY_BY_MODEL},
                      "x.model = f.model AND x.host = 0 AND x.device = 0 AND x.operation = 0"},
};

struct expired_sums {
    sqlite3 *db;
    const struct query_filter *filter;
    enum record_kind kind;
    int64_t expired_ns; // records of the kind started before are gone
    enum rollup_grouping from, to;
    int64_t since_ns, until_ns; // start of the buckets that are copied
    const struct query_metric *metric;
    sqlite3_stmt *insert;
    struct rollup_row_key key; // of the row being merged
    struct ratio cell;         // no values: there is no row
    bool is_damaged;           // a part of it failed its checksum
};

// ---- Rows -------------------------------------------------------------------------------

static enum status add_gap(struct expired_sums *sums, enum rollup_level level, enum rollup_why why,
                           int64_t since_ns, int64_t until_ns, struct error *err)
{
    if (since_ns >= until_ns)
        return STATUS_OK;
    return database_execf(
        sums->db, err,
        "INSERT INTO bundle.rollup_gap(kind, grouping, level, since_ns, why, until_ns)"
        " VALUES(%d, %d, %d, %lld, %d, %lld)"
        " ON CONFLICT DO UPDATE SET until_ns = max(until_ns, excluded.until_ns)",
        (int)sums->kind, (int)sums->to, (int)level, (long long)since_ns, (int)why,
        (long long)until_ns);
}

// Writes the merged row.  One that is damaged becomes a gap: its records are gone.
static enum status end_row(struct expired_sums *sums, struct error *err)
{
    const struct rollup_row_key *key = &sums->key;
    enum status status = STATUS_OK;
    if (sums->is_damaged) {
        status = add_gap(sums, key->level, ROLLUP_OLD, key->started_ns,
                         rollup_next(key->level, key->started_ns), err);
    } else if (sums->cell.values.count > 0) {
        const int64_t columns[] = {key->metric, key->grouping, key->level, key->started_ns,
                                   key->series};
        const int count = sizeof columns / sizeof *columns;
        for (int i = 0; i < count; i++)
            (void)sqlite3_bind_int64(sums->insert, i + 1, columns[i]);
        status = rollup_row_bind(sums->insert, count + 1, key, &sums->cell,
                                 sums->metric->derived != NULL, err);
        if (status == STATUS_OK)
            status = database_run(sums->db, sums->insert, err);
    }
    aggregate_deinit(&sums->cell.values);
    sums->cell = (struct ratio){0};
    sums->is_damaged = false;
    return status;
}

enum { COLUMN_STARTED, COLUMN_FROM, COLUMN_TO, FIRST_ROW_COLUMN };

static enum status add_cell(struct expired_sums *sums, enum rollup_level level, sqlite3_stmt *row,
                            struct error *err)
{
    const struct rollup_row_key from = {.metric = rollup_metric_number(sums->metric),
                                        .grouping = sums->from,
                                        .level = level,
                                        .started_ns = sqlite3_column_int64(row, COLUMN_STARTED),
                                        .series = sqlite3_column_int64(row, COLUMN_FROM)};
    struct rollup_row_key to = from;
    to.grouping = sums->to;
    to.series = sqlite3_column_int64(row, COLUMN_TO);
    enum status status = STATUS_OK;
    if (to.started_ns != sums->key.started_ns || to.series != sums->key.series)
        status = end_row(sums, err);
    sums->key = to;
    if (status == STATUS_OK && !sums->cell.values.sketch &&
        sketch_new(&sums->cell.values.sketch) != STATUS_OK)
        status = error_no_memory(err, "store");
    if (status == STATUS_OK)
        status = rollup_row_add(&sums->cell, &from, row, FIRST_ROW_COLUMN, err);
    if (status != STATUS_CORRUPT)
        return status;
    sums->is_damaged = true;
    return STATUS_OK;
}

static enum status copy_level(struct expired_sums *sums, enum rollup_level level, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(sums->db);
    sqlite3_str_appendf(sql,
                        "SELECT r.started_ns, r.series, x.id, " ROLLUP_ROW_COLUMNS
                        " FROM main.rollup r CROSS JOIN main.series f ON f.id = r.series"
                        " CROSS JOIN main.series x ON x.grouping = %d AND %s WHERE r.metric = %d"
                        " AND r.grouping = %d AND r.level = %d AND r.started_ns >= %lld"
                        " AND r.started_ns < %lld",
                        (int)sums->to,
                        sums->to == sums->from ? "x.id = f.id" : groupings[sums->to].holds,
                        rollup_metric_number(sums->metric), (int)sums->from, (int)level,
                        (long long)sums->since_ns, (long long)sums->until_ns);
    for (unsigned i = 0; i < groupings[ROLLUP_FULL].count; i++) {
        const enum query_dimension dimension = groupings[ROLLUP_FULL].dimensions[i];
        if (!sums->filter->by[dimension][0])
            continue;
        sqlite3_str_appendf(sql, " AND f.%s", query_dimension_name(dimension));
        filter_append_name(sql, sums->filter, dimension);
    }
    sqlite3_str_appendall(sql, " ORDER BY r.started_ns, x.id");
    sqlite3_stmt *row = NULL;
    enum status status = filter_prepare(sums->db, &row, sql, sums->filter, err);
    while (database_step(sums->db, row, &status, err))
        status = add_cell(sums, level, row, err);
    (void)sqlite3_finalize(row);
    return status == STATUS_OK ? end_row(sums, err) : status;
}

// ---- Gaps -------------------------------------------------------------------------------

// The finest bucket around a time that no gap covers; the time alone where there is none.
static struct gap_span finest_bucket(const struct gap_set *gaps, int64_t time_ns)
{
    for (unsigned i = 0; i < ROLLUP_LEVEL_COUNT; i++) {
        const enum rollup_level level = (enum rollup_level)i;
        const int64_t bucket = rollup_bucket(level, time_ns);
        const int64_t next = rollup_next(level, bucket);
        if (!gap_set_touches(gaps, level, bucket, next))
            return (struct gap_span){bucket, next};
    }
    return (struct gap_span){time_ns, time_ns + 1};
}

static enum status find_edges(struct expired_sums *sums, struct error *err)
{
    const struct query_filter *filter = sums->filter;
    const bool is_cut = filter->until_ns && filter->until_ns < sums->expired_ns;
    struct gap_set gaps = {0};
    enum status status = gap_set_read(&gaps, sums->db, sums->kind, sums->from, GAP_NO_SPAN, err);
    if (status != STATUS_OK)
        return status;
    sums->since_ns = filter->since_ns ? finest_bucket(&gaps, filter->since_ns).since_ns : INT64_MIN;
    sums->until_ns =
        finest_bucket(&gaps, (is_cut ? filter->until_ns : sums->expired_ns) - 1).until_ns;
    gap_set_deinit(&gaps);
    return STATUS_OK;
}

// Adds the gaps over the records that are in no rollup of the bundle.  A collector builds the
// rollups of all days but the one that has expired in part.
static enum status add_records_gap(struct expired_sums *sums, struct error *err)
{
    int64_t last_ns = 0;
    enum status status = database_integerf(
        sums->db, &last_ns, err, "SELECT coalesce(max(started_ns), %lld) FROM bundle.\"%w\"",
        (long long)INT64_MIN, record_kind_info(sums->kind)->name);
    const int64_t end_ns = last_ns < INT64_MAX ? last_ns + 1 : last_ns;
    const int64_t day_ns = rollup_next(ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, sums->until_ns - 1));
    if (status == STATUS_OK)
        status = add_gap(sums, ROLLUP_MONTH, ROLLUP_OLD, sums->until_ns,
                         day_ns < end_ns ? day_ns : end_ns, err);
    return status == STATUS_OK ? add_gap(sums, ROLLUP_MONTH, ROLLUP_CLEARED, day_ns, end_ns, err)
                               : status;
}

static enum status copy_gaps(struct expired_sums *sums, struct error *err)
{
    enum status status =
        database_execf(sums->db, err,
                       "INSERT INTO bundle.rollup_gap(kind, grouping, level, since_ns, why,"
                       " until_ns) SELECT kind, %d, level, since_ns, why, until_ns"
                       " FROM main.rollup_gap WHERE kind = %d AND grouping = %d"
                       " AND since_ns < %lld AND until_ns > %lld",
                       (int)sums->to, (int)sums->kind, (int)sums->from, (long long)sums->until_ns,
                       (long long)sums->since_ns);
    if (status == STATUS_OK && sums->since_ns != INT64_MIN)
        status = add_gap(sums, ROLLUP_MONTH, ROLLUP_OLD,
                         rollup_bucket(ROLLUP_MONTH, sums->since_ns), sums->since_ns, err);
    if (status == STATUS_OK && sums->until_ns < sums->expired_ns)
        status = add_gap(sums, ROLLUP_MONTH, ROLLUP_OLD, sums->until_ns,
                         rollup_next(ROLLUP_MONTH, rollup_bucket(ROLLUP_MONTH, sums->until_ns - 1)),
                         err);
    return status == STATUS_OK ? add_records_gap(sums, err) : status;
}

// ---- All of it --------------------------------------------------------------------------

static enum status copy_grouping(struct expired_sums *sums,
                                 const struct query_metric *const *metrics, unsigned count,
                                 struct error *err)
{
    struct query by = {.filter = *sums->filter};
    for (unsigned i = 0; i < groupings[sums->to].count; i++)
        by.group_by[by.group_count++] = groupings[sums->to].dimensions[i];
    if (!rollup_grouping_for(&sums->from, &by))
        return STATUS_OK;
    enum status status = find_edges(sums, err);
    if (status == STATUS_OK)
        status = copy_gaps(sums, err);
    for (unsigned i = 0; i < count; i++) {
        sums->metric = metrics[i];
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++)
            status = copy_level(sums, (enum rollup_level)level, err);
    }
    return status;
}

static enum status copy_kind(struct expired_sums *sums, struct error *err)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(sums->kind, metrics);
    enum status status =
        database_execf(sums->db, err,
                       "INSERT INTO bundle.rollup_state(metric, watermark, ahead_id, ahead_host)"
                       " SELECT metric, watermark, ahead_id, ahead_host FROM main.rollup_state"
                       " WHERE metric / 256 = %d",
                       (int)sums->kind);
    for (unsigned to = 0; to < ROLLUP_GROUPING_COUNT && status == STATUS_OK; to++) {
        sums->to = (enum rollup_grouping)to;
        status = copy_grouping(sums, metrics, count, err);
    }
    return status;
}

static enum status copy_kinds(struct expired_sums *sums, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        enum query_dimension missing;
        sums->kind = (enum record_kind)kind;
        if (!rollup_has_kind(sums->kind) || !filter_applies(sums->kind, sums->filter, &missing))
            continue;
        status = database_integerf(sums->db, &sums->expired_ns, err,
                                   "SELECT until_ns FROM main.expiry WHERE kind = %u", kind);
        if (status == STATUS_OK && sums->expired_ns != 0 &&
            sums->filter->since_ns < sums->expired_ns)
            status = copy_kind(sums, err);
    }
    return status;
}

enum status bundle_expired(sqlite3 *db, const struct query_filter *filter, struct error *err)
{
    enum rollup_grouping grouping;
    if (!rollup_grouping_for(&grouping, &(struct query){.filter = *filter}))
        return STATUS_OK; // no rollup keeps these apart
    struct expired_sums sums = {.db = db, .filter = filter};
    enum status status =
        database_prepare(db, &sums.insert,
                         "INSERT INTO bundle.rollup(metric, grouping, level, started_ns, series,"
                         " " ROLLUP_ROW_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         false, err);
    if (status == STATUS_OK)
        status = copy_kinds(&sums, err);
    aggregate_deinit(&sums.cell.values);
    (void)sqlite3_finalize(sums.insert);
    return status;
}
