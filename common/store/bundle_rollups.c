// The rollups of a bundle whose filter names something: of records that have expired, and
// that nothing else says.  (One of a time alone has its store's: bundle_window.c.)
//
// They are put together anew.  Of the filter's time that has expired, the finest rollups
// there are come from the store, those of its series that the filter lets through, in
// each grouping from the coarsest one that keeps them apart; from these are made those of
// all coarser levels.  So a month of which the filter covers three days is of these
// three.  Where a bucket that reaches over the end of the filter's time has nothing finer
// below it, it comes whole, as queries take it.
//
// What is newer than the last of these buckets is read from records, which the bundle
// has: a gap says so.
//
// Cells come by the index of their table, a bucket at a time: what is sorted is where a
// bucket's cells lie, not they.
#include <stdio.h>

#include <sqlite3.h>

#include "common/store/bundle_cells.h"
#include "common/store/copy.h"
#include "common/store/database.h"
#include "common/store/filter.h"
#include "common/store/gap_table.h"

// What a grouping keeps apart: a query by it, and a series of it made from another's, `f`.
static const struct {
    unsigned count;
    enum query_dimension dimensions[4];
    const char *series;
} groupings[ROLLUP_GROUPING_COUNT] = {
    [ROLLUP_FULL] = {4,
                     {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE, QUERY_BY_OPERATION},
                     "x.model = f.model AND x.host = f.host AND x.device = f.device"
                     " AND x.operation = f.operation"},
    [ROLLUP_MODEL] = {1,
                      {QUERY_BY_MODEL},
                      "x.model = f.model AND x.host = 0 AND x.device = 0 AND x.operation = 0"},
    [ROLLUP_HOST] = {1,
                     {QUERY_BY_HOST},
                     "x.model = 0 AND x.host = f.host AND x.device = 0 AND x.operation = 0"},
    [ROLLUP_ALL] = {0, {0}, "x.model = 0 AND x.host = 0 AND x.device = 0 AND x.operation = 0"},
};

// One grouping of one kind on its way.
struct folding {
    sqlite3 *db;
    const struct query_filter *filter;
    enum record_kind kind;
    enum rollup_grouping from, to;
    int64_t since_ns, until_ns; // what has expired of the filter's time
    struct gap_set gaps;        // of `from`
    int64_t end_ns;             // of the last bucket that came
    struct bundle_cells cells;  // of one metric
};

// ---- Which come from the store ---------------------------------------------------------

// Whether the level is not kept somewhere in the part of a bucket that is asked for.
static bool has_gap(const struct folding *folding, enum rollup_level level, int64_t start_ns,
                    int64_t end_ns)
{
    return gap_set_touches(&folding->gaps, level,
                           start_ns > folding->since_ns ? start_ns : folding->since_ns,
                           end_ns < folding->until_ns ? end_ns : folding->until_ns);
}

// Whether a bucket may be used, and finer ones do not say all that it does.
static bool is_finest(const struct folding *folding, enum rollup_level level, int64_t start_ns)
{
    const int64_t end_ns = rollup_next(level, start_ns);
    if (gap_set_touches(&folding->gaps, level, start_ns, end_ns))
        return false;
    return level == ROLLUP_MINUTE ||
           has_gap(folding, (enum rollup_level)(level - 1), start_ns, end_ns);
}

static bool comes(const struct folding *folding, enum rollup_level level, int64_t start_ns)
{
    if (start_ns >= folding->until_ns || rollup_next(level, start_ns) <= folding->since_ns ||
        !is_finest(folding, level, start_ns))
        return false;
    for (unsigned above = level + 1; above < ROLLUP_LEVEL_COUNT; above++)
        if (is_finest(folding, (enum rollup_level)above,
                      rollup_bucket((enum rollup_level)above, start_ns)))
            return false; // it is in that one
    return true;
}

// ---- From the store ---------------------------------------------------------------------

// Keys, in the order that the store has them in.
static enum status select_keys(struct folding *folding, enum rollup_level level, sqlite3_stmt **out,
                               struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(folding->db);
    sqlite3_str_appendf(sql,
                        "SELECT r.started_ns, r.series, x.id"
                        " FROM main.rollup r CROSS JOIN main.series f ON f.id = r.series"
                        " CROSS JOIN main.series x ON x.grouping = %d AND %s WHERE r.metric = %d"
                        " AND r.grouping = %d AND r.level = %d AND r.started_ns >= %lld"
                        " AND r.started_ns < %lld",
                        (int)folding->to, groupings[folding->to].series,
                        rollup_metric_number(folding->cells.metric), (int)folding->from, (int)level,
                        (long long)rollup_bucket(level, folding->since_ns),
                        (long long)folding->until_ns);
    for (unsigned i = 0; i < groupings[ROLLUP_FULL].count; i++) {
        const enum query_dimension dimension = groupings[ROLLUP_FULL].dimensions[i];
        const char *name = query_dimension_name(dimension);
        if (folding->filter->by[dimension][0])
            sqlite3_str_appendf(
                sql, " AND f.%s = (SELECT n.id FROM main.name n WHERE n.text = :%s)", name, name);
    }
    sqlite3_str_appendall(sql, " ORDER BY r.started_ns, r.series");
    return filter_prepare(folding->db, out, sql, folding->filter, err);
}

// The rows of a bucket of which some parts came.
static enum status take_bucket(struct folding *folding, enum rollup_level level, int64_t started_ns,
                               struct error *err)
{
    if (folding->cells.part_count == 0)
        return STATUS_OK;
    const struct cell_key from = {.metric = rollup_metric_number(folding->cells.metric),
                                  .grouping = folding->from,
                                  .level = level};
    struct cell_key to = from;
    to.grouping = folding->to;
    to.started_ns = started_ns;
    const int64_t end_ns = rollup_next(level, started_ns);
    folding->end_ns = end_ns > folding->end_ns ? end_ns : folding->end_ns;
    return bundle_cells_write(&folding->cells, &to, &from, false, err);
}

static enum status take_level(struct folding *folding, enum rollup_level level, struct error *err)
{
    sqlite3_stmt *key = NULL;
    int64_t bucket = INT64_MIN;
    bool begun = false, wanted = false; // of the bucket
    enum status status = select_keys(folding, level, &key, err);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(key)) == SQLITE_ROW) {
        const struct bundle_part part = {.to = sqlite3_column_int64(key, 2),
                                         .started_ns = sqlite3_column_int64(key, 0),
                                         .series = sqlite3_column_int64(key, 1)};
        if (!begun || part.started_ns != bucket) {
            status = take_bucket(folding, level, bucket, err);
            begun = true;
            bucket = part.started_ns;
            wanted = comes(folding, level, bucket);
        }
        if (status == STATUS_OK && wanted)
            status = bundle_cells_part(&folding->cells, &part, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(folding->db, "store", err);
    if (status == STATUS_OK)
        status = take_bucket(folding, level, bucket, err);
    bundle_cells_forget(&folding->cells);
    (void)sqlite3_finalize(key);
    return status;
}

// ---- From finer ones -------------------------------------------------------------------

static enum status next_bucket(const struct folding *folding, sqlite3_stmt *find,
                               enum rollup_level level, int64_t from_ns, int64_t *bucket,
                               bool *found, struct error *err)
{
    (void)sqlite3_bind_int64(find, 1, rollup_metric_number(folding->cells.metric));
    (void)sqlite3_bind_int64(find, 2, folding->to);
    (void)sqlite3_bind_int64(find, 3, (int64_t)level - 1);
    (void)sqlite3_bind_int64(find, 4, from_ns);
    const int rc = sqlite3_step(find);
    *found = rc == SQLITE_ROW;
    if (*found)
        *bucket = rollup_bucket(level, sqlite3_column_int64(find, 0));
    enum status status = rc == SQLITE_ROW || rc == SQLITE_DONE
                             ? STATUS_OK
                             : database_error(folding->db, "store", err);
    (void)sqlite3_reset(find);
    return status;
}

static enum status lift_bucket(struct folding *folding, sqlite3_stmt *keys, enum rollup_level level,
                               int64_t bucket, struct error *err)
{
    const struct cell_key to = {.metric = rollup_metric_number(folding->cells.metric),
                                .grouping = folding->to,
                                .level = level,
                                .started_ns = bucket};
    struct cell_key from = to;
    from.level = (enum rollup_level)(level - 1);
    const int64_t numbers[] = {to.metric, to.grouping, from.level, bucket,
                               rollup_next(level, bucket) - 1};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)sqlite3_bind_int64(keys, (int)i + 1, numbers[i]);
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(keys)) == SQLITE_ROW) {
        const int64_t series = sqlite3_column_int64(keys, 1);
        const struct bundle_part part = {
            .to = series, .started_ns = sqlite3_column_int64(keys, 0), .series = series};
        status = bundle_cells_part(&folding->cells, &part, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(folding->db, "store", err);
    (void)sqlite3_reset(keys);
    if (status == STATUS_OK)
        status = bundle_cells_write(&folding->cells, &to, &from, true, err);
    bundle_cells_forget(&folding->cells);
    return status;
}

// Makes the level's buckets from those of the next finer level.
static enum status lift(struct folding *folding, enum rollup_level level, struct error *err)
{
#define OF_LEVEL " FROM bundle.rollup WHERE metric = ?1 AND grouping = ?2 AND level = ?3"
    sqlite3_stmt *find = NULL, *keys = NULL;
    int64_t bucket = INT64_MIN;
    bool found = true;
    enum status status = database_prepare(folding->db, &find,
                                          "SELECT started_ns" OF_LEVEL " AND started_ns >= ?4"
                                          " ORDER BY started_ns LIMIT 1",
                                          false, err);
    if (status == STATUS_OK)
        status = database_prepare(
            folding->db, &keys,
            "SELECT started_ns, series" OF_LEVEL " AND started_ns BETWEEN ?4 AND ?5", false, err);
    if (status == STATUS_OK)
        status = next_bucket(folding, find, level, INT64_MIN, &bucket, &found, err);
    while (status == STATUS_OK && found) {
        status = lift_bucket(folding, keys, level, bucket, err);
        const int64_t next_ns = rollup_next(level, bucket);
        found = next_ns < INT64_MAX;
        if (status == STATUS_OK && found)
            status = next_bucket(folding, find, level, next_ns, &bucket, &found, err);
    }
    (void)sqlite3_finalize(find);
    (void)sqlite3_finalize(keys);
    return status;
#undef OF_LEVEL
}

static enum status fold_metric(struct folding *folding, const struct query_metric *metric,
                               struct error *err)
{
    enum status status = bundle_cells_begin(&folding->cells, metric, err);
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++) {
        if (level > 0)
            status = lift(folding, (enum rollup_level)level, err);
        if (status == STATUS_OK)
            status = take_level(folding, (enum rollup_level)level, err);
    }
    return status;
}

// ---- What else there is to say -----------------------------------------------------------

// The gaps of the store, and one over the records that no rollup of the bundle holds.
static enum status copy_gaps(struct folding *folding, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(folding->db);
    sqlite3_str_appendf(sql,
                        "INSERT INTO bundle.rollup_gap(kind, grouping, level, since_ns, why,"
                        " until_ns) SELECT kind, %d, level, since_ns, why, until_ns"
                        " FROM main.rollup_gap WHERE kind = %d AND grouping = %d"
                        " AND since_ns < %lld AND until_ns > %lld;",
                        (int)folding->to, (int)folding->kind, (int)folding->from,
                        (long long)folding->until_ns, (long long)folding->since_ns);
    sqlite3_str_appendf(sql,
                        "INSERT INTO bundle.rollup_gap(kind, grouping, level, since_ns, why,"
                        " until_ns) SELECT %d, %d, %d, %lld, %d, min(last, %lld) + 1 FROM"
                        " (SELECT max(started_ns) AS last FROM bundle.\"%w\")"
                        " WHERE last >= %lld"
                        " ON CONFLICT DO UPDATE SET until_ns = max(until_ns, excluded.until_ns)",
                        (int)folding->kind, (int)folding->to, (int)ROLLUP_MONTH,
                        (long long)folding->end_ns, (int)ROLLUP_CLEARED, (long long)INT64_MAX - 1,
                        record_kind_info(folding->kind)->name, (long long)folding->end_ns);
    return database_exec_built(folding->db, sql, err);
}

static enum status copy_watermark(sqlite3 *db, const struct query_metric *metric, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql,
                        "INSERT INTO bundle.rollup_state(metric, watermark)"
                        " SELECT metric, watermark FROM main.rollup_state WHERE metric = %d",
                        rollup_metric_number(metric));
    return database_exec_built(db, sql, err);
}

// ---- All of it --------------------------------------------------------------------------

// The time that the grouping's last bucket ends at is that of all metrics: where one has
// no values, others may have.
static enum status fold_grouping(struct folding *folding, const struct query_metric *const *metrics,
                                 unsigned count, struct error *err)
{
    struct query by = {.filter = *folding->filter};
    for (unsigned i = 0; i < groupings[folding->to].count; i++)
        by.group_by[by.group_count++] = groupings[folding->to].dimensions[i];
    if (!rollup_grouping_for(&folding->from, &by))
        return STATUS_OK;
    folding->end_ns = folding->until_ns;
    enum status status =
        gap_set_read(&folding->gaps, folding->db, folding->kind, folding->from, false, err);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        status = fold_metric(folding, metrics[i], err);
    if (status == STATUS_OK)
        status = copy_gaps(folding, err);
    gap_set_deinit(&folding->gaps);
    return status;
}

static enum status fold_kind(struct folding *folding, struct error *err)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(folding->kind, metrics);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        status = copy_watermark(folding->db, metrics[i], err);
    for (unsigned to = 0; to < ROLLUP_GROUPING_COUNT && status == STATUS_OK; to++) {
        folding->to = (enum rollup_grouping)to;
        status = fold_grouping(folding, metrics, count, err);
    }
    return status;
}

// What has expired of the filter's time.
static enum status read_expired(struct folding *folding, struct error *err)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT max(until_ns) FROM main.expiry WHERE kind = %d",
                   (int)folding->kind);
    const struct query_filter *filter = folding->filter;
    folding->since_ns = filter->since_ns ? filter->since_ns : INT64_MIN;
    folding->until_ns = INT64_MIN; // nothing
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(folding->db, &row, sql, false, err);
    if (status != STATUS_OK)
        return status;
    if (sqlite3_step(row) != SQLITE_ROW)
        status = database_error(folding->db, "store", err);
    else if (sqlite3_column_type(row, 0) != SQLITE_NULL)
        folding->until_ns = sqlite3_column_int64(row, 0);
    if (filter->until_ns && filter->until_ns < folding->until_ns)
        folding->until_ns = filter->until_ns;
    (void)sqlite3_finalize(row);
    return status;
}

static enum status fold_all(struct folding *folding, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        enum query_dimension missing;
        folding->kind = (enum record_kind)kind;
        if (!rollup_has_kind(folding->kind) ||
            !filter_applies(folding->kind, folding->filter, &missing))
            continue;
        status = read_expired(folding, err);
        if (status == STATUS_OK && folding->since_ns < folding->until_ns)
            status = fold_kind(folding, err);
    }
    return status;
}

enum status bundle_rollups(sqlite3 *db, const struct query_filter *filter, struct error *err)
{
    if (filter->by[QUERY_BY_RUN][0] || filter->by[QUERY_BY_STAGE][0] ||
        filter->by[QUERY_BY_WORKLOAD][0] || filter->by[QUERY_BY_STATUS][0])
        return STATUS_OK; // no rollup keeps these apart
    struct folding folding = {.db = db, .filter = filter};
    enum status status = bundle_cells_init(&folding.cells, db, err);
    if (status == STATUS_OK)
        status = fold_all(&folding, err);
    bundle_cells_deinit(&folding.cells);
    return status;
}
