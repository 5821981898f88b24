// The rollups of a bundle that is of a window of time alone: those of the store.
//
// Buckets that lie in the window whole come as they are, with the watermark, since ids
// of records are the store's.  A bucket that the window cuts is put together from the finer
// ones in it and, where these are not kept and for the window's first and last minute, from
// the bundle's records.  So each row is of all the bundle's records up to the watermark, as
// if a collector had made it.  Where these records have expired, the bucket comes whole, as
// queries take it.
//
// What the store does not keep the bundle does not have either: gaps come along.  A damaged
// row does not come: a gap says that its records are to be read, which a collector fills
// again, or, where they have expired, that there is nothing.
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/bundle_cells.h"
#include "common/store/copy.h"
#include "common/store/database.h"
#include "common/store/schema.h"

#define CELLS_OF(columns, database)                                                                \
    "SELECT started_ns, series" columns " FROM " database ".rollup WHERE metric = ?1"              \
    " AND grouping = ?2 AND level = ?3 AND started_ns BETWEEN ?4 AND ?5"

enum { FIRST_CELL_COLUMN = 2 };

struct window {
    sqlite3 *db;
    struct bundle_gaps *lost;
    int64_t since_ns, until_ns; // INT64_MIN, INT64_MAX: open
    sqlite3_stmt *stored, *made;
    // Of one kind and grouping, then of one metric.
    enum record_kind kind;
    enum rollup_grouping grouping;
    int64_t expired_ns;
    struct gap_set gaps;
    sqlite3_stmt *records; // with their series
    struct bundle_cells cells;
    int64_t watermark;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

// ---- What is lost -----------------------------------------------------------------------

static enum status add_gap(struct bundle_gaps *gaps, const struct gap *gap, struct error *err)
{
    if (gaps->count == gaps->room) {
        const size_t room = gaps->room ? 2 * gaps->room : 16;
        struct gap *bigger = realloc(gaps->list, room * sizeof *bigger);
        if (!bigger)
            return out_of_memory(err);
        gaps->list = bigger;
        gaps->room = room;
    }
    gaps->list[gaps->count++] = *gap;
    return STATUS_OK;
}

static bool is_cut(const struct window *window, enum rollup_level level, int64_t bucket)
{
    return bucket < window->since_ns ||
           (window->until_ns != INT64_MAX && rollup_next(level, bucket) > window->until_ns);
}

// A row that is not there: its time is read from records, where there are any.  A bucket
// that is put together from such is not to be used.
static enum status lose(struct window *window, const struct cell_key *key, struct error *err)
{
    struct gap gap = {.kind = window->kind,
                      .grouping = key->grouping,
                      .level = key->level,
                      .since_ns = key->started_ns,
                      .until_ns = rollup_next(key->level, key->started_ns),
                      .why = ROLLUP_OLD};
    if (key->started_ns < window->expired_ns) {
        if (is_cut(window, ROLLUP_MONTH, rollup_bucket(ROLLUP_MONTH, key->started_ns)))
            gap.level = ROLLUP_MONTH;
        return add_gap(window->lost, &gap, err);
    }
    gap.level = ROLLUP_MONTH;
    gap.why = ROLLUP_CLEARED; // of all groupings, in whole hours: what a collector fills
    gap.until_ns = rollup_next(ROLLUP_HOUR, rollup_bucket(ROLLUP_HOUR, gap.until_ns - 1));
    gap.since_ns = rollup_bucket(ROLLUP_HOUR, gap.since_ns);
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++) {
        gap.grouping = (enum rollup_grouping)g;
        status = add_gap(window->lost, &gap, err);
    }
    return status;
}

// ---- Buckets that come as they are ------------------------------------------------------

static struct cell_key key_of(const struct window *window, enum rollup_level level,
                              int64_t started_ns)
{
    return (struct cell_key){.metric = rollup_metric_number(window->cells.metric),
                             .grouping = window->grouping,
                             .level = level,
                             .started_ns = started_ns};
}

static void bind_cells(const struct window *window, sqlite3_stmt *cells, enum rollup_level level,
                       int64_t first_ns, int64_t last_ns)
{
    const int64_t of[] = {rollup_metric_number(window->cells.metric), window->grouping, level,
                          first_ns, last_ns};
    for (unsigned i = 0; i < sizeof of / sizeof *of; i++)
        (void)sqlite3_bind_int64(cells, (int)i + 1, of[i]);
}

// Those that start from the first time to the last, both in.
static enum status copy_buckets(struct window *window, enum rollup_level level, int64_t first_ns,
                                int64_t last_ns, struct error *err)
{
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    bind_cells(window, window->stored, level, first_ns, last_ns);
    while (status == STATUS_OK && (rc = sqlite3_step(window->stored)) == SQLITE_ROW) {
        struct cell_key key = key_of(window, level, sqlite3_column_int64(window->stored, 0));
        key.series = sqlite3_column_int64(window->stored, 1);
        if (gap_set_touches(&window->gaps, level, key.started_ns,
                            rollup_next(level, key.started_ns)))
            continue;
        status = bundle_cells_copy(&window->cells, &key, window->stored, FIRST_CELL_COLUMN, err);
        if (status == STATUS_CORRUPT)
            status = lose(window, &key, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(window->db, "store", err);
    (void)sqlite3_reset(window->stored);
    return status;
}

// ---- Buckets that are cut ---------------------------------------------------------------

static bool is_lacking(const struct window *window, enum rollup_level level,
                       const struct gap_span *span)
{
    return gap_set_touches(&window->gaps, level, span->since_ns, span->until_ns);
}

// The part of a bucket that lies in the window.
static struct gap_span part_of(const struct window *window, enum rollup_level level, int64_t bucket)
{
    const int64_t next_ns = rollup_next(level, bucket);
    return (struct gap_span){bucket > window->since_ns ? bucket : window->since_ns,
                             next_ns < window->until_ns ? next_ns : window->until_ns};
}

// The records of a time, which no finer rollup has.  `*known`: all their series are.
static enum status add_records(struct window *window, const struct gap_span *span, bool *known,
                               struct error *err)
{
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    (void)sqlite3_bind_int64(window->records, 1, span->since_ns);
    (void)sqlite3_bind_int64(window->records, 2, span->until_ns - 1);
    (void)sqlite3_bind_int64(window->records, 3, window->watermark);
    while (status == STATUS_OK && (rc = sqlite3_step(window->records)) == SQLITE_ROW) {
        const struct bundle_part part = {.to = sqlite3_column_int64(window->records, 1),
                                         .record = sqlite3_column_int64(window->records, 0)};
        *known = *known && sqlite3_column_type(window->records, 1) != SQLITE_NULL;
        status = bundle_cells_part(&window->cells, &part, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(window->db, "store", err);
    (void)sqlite3_reset(window->records);
    return status;
}

static enum status add_finer(struct window *window, enum rollup_level level, int64_t bucket,
                             struct error *err)
{
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    bind_cells(window, window->made, (enum rollup_level)(level - 1), bucket,
               rollup_next(level, bucket) - 1);
    while (status == STATUS_OK && (rc = sqlite3_step(window->made)) == SQLITE_ROW) {
        const int64_t series = sqlite3_column_int64(window->made, 1);
        const struct bundle_part part = {
            .to = series, .started_ns = sqlite3_column_int64(window->made, 0), .series = series};
        status = bundle_cells_part(&window->cells, &part, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(window->db, "store", err);
    (void)sqlite3_reset(window->made);
    return status;
}

// Adds all that lies in the bucket.  `*expired`: some of it has no records any more.
static enum status add_all(struct window *window, enum rollup_level level, int64_t bucket,
                           bool *known, bool *expired, struct error *err)
{
    const struct gap_span all = part_of(window, level, bucket);
    if (level == ROLLUP_MINUTE) {
        *expired = all.since_ns < window->expired_ns;
        return add_records(window, &all, known, err);
    }
    const enum rollup_level finer = (enum rollup_level)(level - 1);
    enum status status = add_finer(window, level, bucket, err);
    for (int64_t at = rollup_bucket(finer, all.since_ns); at < all.until_ns && status == STATUS_OK;
         at = rollup_next(finer, at)) {
        const struct gap_span part = part_of(window, finer, at);
        if (!is_lacking(window, finer, &part))
            continue;
        *expired = *expired || part.since_ns < window->expired_ns;
        status = add_records(window, &part, known, err);
    }
    return status;
}

static enum status make_bucket(struct window *window, enum rollup_level level, int64_t bucket,
                               struct error *err)
{
    const struct gap_span all = part_of(window, level, bucket);
    const struct cell_key to = key_of(window, level, bucket);
    const struct cell_key from =
        key_of(window, level == ROLLUP_MINUTE ? level : (enum rollup_level)(level - 1), bucket);
    bool known = true, expired = false;
    if (is_lacking(window, level, &all))
        return STATUS_OK;
    enum status status = add_all(window, level, bucket, &known, &expired, err);
    if (status == STATUS_OK && known && !expired) {
        status = bundle_cells_write(&window->cells, &to, &from, true, err);
        return status == STATUS_CORRUPT ? lose(window, &to, err) : status;
    }
    bundle_cells_forget(&window->cells);
    if (status != STATUS_OK)
        return status;
    return expired ? copy_buckets(window, level, bucket, bucket, err) : lose(window, &to, err);
}

// ---- All of it --------------------------------------------------------------------------

static enum status copy_level(struct window *window, enum rollup_level level, struct error *err)
{
    int64_t first_ns = rollup_bucket(level, window->since_ns);
    int64_t last_ns = rollup_bucket(level, window->until_ns);
    const bool cuts_first = window->since_ns != INT64_MIN && first_ns < window->since_ns;
    const bool cuts_last = window->until_ns != INT64_MAX && last_ns < window->until_ns &&
                           (last_ns != first_ns || !cuts_first);
    enum status status = STATUS_OK;
    if (cuts_first)
        status = make_bucket(window, level, first_ns, err);
    if (status == STATUS_OK && cuts_last)
        status = make_bucket(window, level, last_ns, err);
    if (cuts_first)
        first_ns = rollup_next(level, first_ns);
    if (window->until_ns == INT64_MAX)
        last_ns = INT64_MAX;
    else if (last_ns > INT64_MIN)
        last_ns--;
    if (status == STATUS_OK && first_ns <= last_ns)
        status = copy_buckets(window, level, first_ns, last_ns, err);
    return status;
}

static enum status read_number(struct window *window, const char *of, int number, int64_t *out,
                               struct error *err)
{
    char *sql =
        sqlite3_mprintf("SELECT coalesce((%s = %d), %lld)", of, number, (long long)INT64_MIN + 1);
    enum status status = sql ? database_integer(window->db, sql, out, err) : out_of_memory(err);
    sqlite3_free(sql);
    return status;
}

static enum status copy_metric(struct window *window, const struct query_metric *metric,
                               struct error *err)
{
    enum status status = bundle_cells_begin(&window->cells, metric, err);
    if (status == STATUS_OK)
        status = read_number(window, "SELECT watermark FROM main.rollup_state WHERE metric",
                             rollup_metric_number(metric), &window->watermark, err);
    // A level is made from the finer one.
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++)
        status = copy_level(window, (enum rollup_level)level, err);
    return status;
}

// What a grouping keeps apart is a name of the record, what it does not is 0.
static void append_key(sqlite3_str *sql, const struct window *window, const char *column,
                       enum query_dimension dimension, bool is_apart)
{
    const char *expression = is_apart ? schema_dimension(window->kind, dimension) : NULL;
    sqlite3_str_appendf(sql, " AND x.%s = coalesce(%s, 0)", column,
                        expression ? expression : "NULL");
}

static enum status prepare_records(struct window *window, struct error *err)
{
    const enum rollup_grouping by = window->grouping;
    sqlite3_str *sql = sqlite3_str_new(window->db);
    sqlite3_str_appendf(sql,
                        "SELECT t.id, x.id FROM bundle.\"%w\" t LEFT JOIN main.series x"
                        " ON x.grouping = %d",
                        record_kind_info(window->kind)->name, (int)by);
    append_key(sql, window, "model", QUERY_BY_MODEL, by == ROLLUP_FULL || by == ROLLUP_MODEL);
    append_key(sql, window, "host", QUERY_BY_HOST, by == ROLLUP_FULL || by == ROLLUP_HOST);
    append_key(sql, window, "device", QUERY_BY_DEVICE, by == ROLLUP_FULL);
    append_key(sql, window, "operation", QUERY_BY_OPERATION, by == ROLLUP_FULL);
    sqlite3_str_appendall(sql, " WHERE t.started_ns BETWEEN ?1 AND ?2 AND +t.id <= ?3");
    char *text = sqlite3_str_finish(sql);
    (void)sqlite3_finalize(window->records);
    window->records = NULL;
    enum status status = text ? database_prepare(window->db, &window->records, text, false, err)
                              : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

static enum status copy_grouping(struct window *window, const struct query_metric *const *metrics,
                                 unsigned count, struct error *err)
{
    enum status status =
        gap_set_read(&window->gaps, window->db, window->kind, window->grouping, false, err);
    if (status == STATUS_OK)
        status = prepare_records(window, err);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        status = copy_metric(window, metrics[i], err);
    return status;
}

static enum status copy_state(struct window *window, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(window->db);
    sqlite3_str_appendf(sql,
                        "INSERT INTO bundle.rollup_gap(kind, grouping, level, since_ns, why,"
                        " until_ns) SELECT kind, grouping, level, since_ns, why, until_ns"
                        " FROM main.rollup_gap WHERE kind = %d AND since_ns < %lld"
                        " AND until_ns > %lld;",
                        (int)window->kind, (long long)window->until_ns,
                        (long long)window->since_ns);
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(window->kind, metrics);
    for (unsigned i = 0; i < count; i++)
        sqlite3_str_appendf(sql,
                            "INSERT INTO bundle.rollup_state(metric, watermark) SELECT metric,"
                            " watermark FROM main.rollup_state WHERE metric = %d;",
                            rollup_metric_number(metrics[i]));
    return database_exec_built(window->db, sql, err);
}

static enum status copy_kind(struct window *window, struct error *err)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(window->kind, metrics);
    enum status status = copy_state(window, err);
    if (status == STATUS_OK)
        status = read_number(window, "SELECT until_ns FROM main.expiry WHERE kind",
                             (int)window->kind, &window->expired_ns, err);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++) {
        window->grouping = (enum rollup_grouping)g;
        status = copy_grouping(window, metrics, count, err);
    }
    return status;
}

enum status bundle_window(sqlite3 *db, const struct query_filter *filter, struct bundle_gaps *lost,
                          struct error *err)
{
    struct window window = {.db = db,
                            .lost = lost,
                            .since_ns = filter->since_ns ? filter->since_ns : INT64_MIN,
                            .until_ns = filter->until_ns ? filter->until_ns : INT64_MAX};
    enum status status = bundle_cells_init(&window.cells, db, err);
    if (status == STATUS_OK)
        status =
            database_prepare(db, &window.stored, CELLS_OF(", " CELL_COLUMNS, "main"), false, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &window.made, CELLS_OF("", "bundle"), false, err);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        window.kind = (enum record_kind)kind;
        if (rollup_has_kind(window.kind))
            status = copy_kind(&window, err);
    }
    (void)sqlite3_finalize(window.stored);
    (void)sqlite3_finalize(window.made);
    (void)sqlite3_finalize(window.records);
    gap_set_deinit(&window.gaps);
    bundle_cells_deinit(&window.cells);
    return status;
}
