#include "common/store/slowest.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/cell.h"
#include "common/store/database.h"
#include "common/store/filter.h"
#include "common/store/rollup.h"

// Beyond so many records above the watermark, a window's are found by their time.
enum { TAIL_BY_ID_MAX = 100000 };

// A stretch of time that may hold some of the slowest.
struct stretch {
    double promise; // no value in it is higher
    int64_t since_ns, until_ns;
    int level; // enum rollup_level of the bucket it lies in, above them: the window;
               // below 0: records are to be read
};

enum { LEVEL_RECORDS = -1, LEVEL_WINDOW = ROLLUP_LEVEL_COUNT };

// Rollups that hold all records of the filter, and maybe more.
struct witness {
    enum rollup_grouping grouping;
    int64_t series[SLOWEST_SERIES_MAX];
    unsigned count;
};

enum { WITNESSES_MAX = ROLLUP_GROUPING_COUNT };

// Where a grouping's level, and all finer ones, cannot be used.
struct gap {
    int64_t grouping, level, since_ns, until_ns;
};

// Values are negated where the lowest are wanted: here the highest always are.
struct search {
    struct store *store;
    const struct query_metric *metric;
    struct query_filter filter; // without its window
    struct slowest *found;
    size_t wanted;
    double sign;
    int64_t since_ns, until_ns; // of what there is
    int number;                 // of the metric's rollups
    int64_t watermark;
    struct witness witnesses[WITNESSES_MAX];
    unsigned witness_count;
    struct gap *gaps;
    size_t gap_count;
    struct stretch *heap; // the highest promise first
    size_t heap_count, heap_room;
    struct sqlite3_stmt *records, *rollup;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

// ---- The values found ---------------------------------------------------------------

// The least of the values found, once there are enough of them.
static double least(const struct search *search)
{
    const struct slowest *found = search->found;
    if (found->count < search->wanted)
        return -(double)INFINITY;
    return found->values[found->count - 1].value;
}

static void keep_value(struct search *search, int64_t id, double value)
{
    struct slowest *found = search->found;
    if (found->count == search->wanted && !(value > least(search)))
        return;
    if (found->count < search->wanted)
        found->count++;
    size_t place = found->count - 1;
    while (place > 0 && found->values[place - 1].value < value) {
        found->values[place] = found->values[place - 1];
        place--;
    }
    found->values[place] = (struct slowest_value){.id = id, .value = value};
}

// ---- The heap -------------------------------------------------------------------------

static enum status push(struct search *search, struct stretch stretch, struct error *err)
{
    if (search->heap_count == search->heap_room) {
        const size_t room = search->heap_room ? 2 * search->heap_room : 64;
        struct stretch *heap = realloc(search->heap, room * sizeof *heap);
        if (!heap)
            return out_of_memory(err);
        search->heap = heap;
        search->heap_room = room;
    }
    size_t place = search->heap_count++;
    while (place > 0 && search->heap[(place - 1) / 2].promise < stretch.promise) {
        search->heap[place] = search->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    search->heap[place] = stretch;
    return STATUS_OK;
}

static struct stretch pop(struct search *search)
{
    struct stretch *heap = search->heap;
    const struct stretch top = heap[0];
    const struct stretch last = heap[--search->heap_count];
    size_t place = 0;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= search->heap_count)
            break;
        if (child + 1 < search->heap_count && heap[child + 1].promise > heap[child].promise)
            child++;
        if (heap[child].promise <= last.promise)
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = last;
    return top;
}

// ---- Records ----------------------------------------------------------------------------

// "SELECT id, value FROM kind t WHERE the filter's names".
static void append_records(sqlite3_str *sql, const struct search *search, int64_t after_id)
{
    const struct query_metric *metric = search->metric;
    if (metric->derived)
        sqlite3_str_appendf(sql, "SELECT t.id, CASE WHEN (%s) > 0 THEN CAST(%s AS REAL) / (%s) END",
                            metric->derived->denominator, metric->derived->numerator,
                            metric->derived->denominator);
    else
        sqlite3_str_appendf(sql, "SELECT t.id, t.\"%w\"", metric->name);
    sqlite3_str_appendall(sql, " FROM ");
    store_append_from(sql, search->store, metric->kind, search->since_ns, after_id, 0);
    filter_where(sql, metric->kind, &search->filter);
}

static enum status take_values(struct search *search, sqlite3_stmt *stmt, struct error *err)
{
    int rc = sqlite3_step(stmt);
    for (; rc == SQLITE_ROW; rc = sqlite3_step(stmt)) {
        search->found->rows_read++;
        if (sqlite3_column_type(stmt, 1) != SQLITE_NULL)
            keep_value(search, sqlite3_column_int64(stmt, 0),
                       search->sign * sqlite3_column_double(stmt, 1));
    }
    enum status status =
        rc == SQLITE_DONE ? STATUS_OK : database_error(search->store->db, "store", err);
    (void)sqlite3_reset(stmt);
    return status;
}

static void bind_window(sqlite3_stmt *stmt, int64_t since_ns, int64_t until_ns)
{
    (void)sqlite3_bind_int64(stmt, sqlite3_bind_parameter_index(stmt, ":from"), since_ns);
    (void)sqlite3_bind_int64(stmt, sqlite3_bind_parameter_index(stmt, ":to"), until_ns);
}

static enum status read_records(struct search *search, const struct stretch *stretch,
                                struct error *err)
{
    enum status status = STATUS_OK;
    if (!search->records) {
        sqlite3_str *sql = sqlite3_str_new(search->store->db);
        append_records(sql, search, INT64_MIN);
        // The sign keeps SQLite off the row ids: the stretch is found by time.
        sqlite3_str_appendf(sql,
                            " AND t.started_ns >= :from AND t.started_ns < :to AND +t.id <= %lld",
                            (long long)search->watermark);
        status = filter_prepare(search->store->db, &search->records, sql, &search->filter, err);
    }
    if (status != STATUS_OK)
        return status;
    bind_window(search->records, stretch->since_ns, stretch->until_ns);
    return take_values(search, search->records, err);
}

// The records that no rollup holds yet.
static enum status read_tail(struct search *search, struct error *err)
{
    sqlite3 *db = search->store->db;
    const char *table = record_kind_info(search->metric->kind)->name;
    char *text = sqlite3_mprintf("SELECT max(id) FROM \"%w\"", table);
    int64_t last = 0;
    enum status status = text ? database_integer(db, text, &last, err) : out_of_memory(err);
    sqlite3_free(text);
    if (status != STATUS_OK || last <= search->watermark)
        return status;
    const bool by_id = last - search->watermark <= TAIL_BY_ID_MAX;
    sqlite3_str *sql = sqlite3_str_new(db);
    append_records(sql, search, search->watermark);
    sqlite3_str_appendf(sql,
                        by_id
                            ? " AND t.id > %lld AND +t.started_ns >= :from AND +t.started_ns < :to"
                            : " AND +t.id > %lld AND t.started_ns >= :from AND t.started_ns < :to",
                        (long long)search->watermark);
    sqlite3_stmt *stmt = NULL;
    status = filter_prepare(db, &stmt, sql, &search->filter, err);
    if (status != STATUS_OK)
        return status;
    bind_window(stmt, search->since_ns, search->until_ns);
    status = take_values(search, stmt, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// ---- What rollups can say ------------------------------------------------------------

static enum status take_gap(void *context, sqlite3_stmt *row, struct error *err)
{
    struct search *search = context;
    if ((search->gap_count & (search->gap_count - 1)) == 0) { // full at each power of two
        const size_t room = search->gap_count ? 2 * search->gap_count : 1;
        struct gap *gaps = realloc(search->gaps, room * sizeof *gaps);
        if (!gaps)
            return out_of_memory(err);
        search->gaps = gaps;
    }
    search->gaps[search->gap_count++] = (struct gap){
        .grouping = sqlite3_column_int64(row, 0),
        .level = sqlite3_column_int64(row, 1),
        .since_ns = sqlite3_column_int64(row, 2),
        .until_ns = sqlite3_column_int64(row, 3),
    };
    return STATUS_OK;
}

static enum status read_gaps(struct search *search, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT grouping, level, since_ns, until_ns FROM rollup_gap WHERE kind = %d"
                        " AND since_ns < %lld AND until_ns > %lld",
                        (int)search->metric->kind, (long long)search->until_ns,
                        (long long)search->since_ns);
    return reader_scan(search->store, sql, NULL, take_gap, search, err);
}

static enum status take_series(void *context, sqlite3_stmt *row, struct error *err)
{
    struct witness *witness = context;
    (void)err;
    if (witness->count < SLOWEST_SERIES_MAX)
        witness->series[witness->count] = sqlite3_column_int64(row, 0);
    witness->count++;
    return STATUS_OK;
}

// The series of a grouping that records of the filter are in.  A run's records are in
// those of its host.
static enum status find_series(struct search *search, enum rollup_grouping grouping,
                               struct error *err)
{
    const struct query_filter *filter = &search->filter;
    struct witness *witness = &search->witnesses[search->witness_count];
    *witness = (struct witness){.grouping = grouping};
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendf(sql, "SELECT s.id FROM series s WHERE s.grouping = %d", (int)grouping);
    static const char named[] = " AND s.%s = (SELECT n.id FROM name n WHERE n.text = :%s)";
    if (filter->by[QUERY_BY_MODEL][0] && (grouping == ROLLUP_FULL || grouping == ROLLUP_MODEL))
        sqlite3_str_appendf(sql, named, "model", "model");
    if (filter->by[QUERY_BY_DEVICE][0] && grouping == ROLLUP_FULL)
        sqlite3_str_appendf(sql, named, "device", "device");
    if (grouping == ROLLUP_FULL || grouping == ROLLUP_HOST) {
        if (filter->by[QUERY_BY_HOST][0])
            sqlite3_str_appendf(sql, named, "host", "host");
        if (filter->by[QUERY_BY_RUN][0])
            sqlite3_str_appendall(sql, " AND s.host IN (SELECT r.host FROM run r"
                                       " WHERE substr(r.uuid, 1, length(:run)) = lower(:run))");
    }
    sqlite3_str_appendf(sql, " LIMIT %d", SLOWEST_SERIES_MAX + 1);
    enum status status = reader_scan(search->store, sql, filter, take_series, witness, err);
    if (status == STATUS_OK && witness->count <= SLOWEST_SERIES_MAX)
        search->witness_count++;
    return status;
}

// The groupings that can promise something, those that keep most apart first.
static enum status find_witnesses(struct search *search, struct error *err)
{
    const struct query_filter *filter = &search->filter;
    const bool model = filter->by[QUERY_BY_MODEL][0] != '\0';
    const bool host = filter->by[QUERY_BY_HOST][0] || filter->by[QUERY_BY_RUN][0];
    const bool device = filter->by[QUERY_BY_DEVICE][0] != '\0';
    const bool wanted[ROLLUP_GROUPING_COUNT] = {
        [ROLLUP_FULL] = model + host + device > 1 || device,
        [ROLLUP_MODEL] = model,
        [ROLLUP_HOST] = host,
        [ROLLUP_ALL] = true,
    };
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < ROLLUP_GROUPING_COUNT && status == STATUS_OK; i++)
        if (wanted[i])
            status = find_series(search, (enum rollup_grouping)i, err);
    return status;
}

static bool is_kept(const struct search *search, enum rollup_grouping grouping,
                    enum rollup_level level, int64_t since_ns, int64_t until_ns)
{
    for (size_t i = 0; i < search->gap_count; i++) {
        const struct gap *gap = &search->gaps[i];
        if (gap->grouping == (int64_t)grouping && gap->level >= (int64_t)level &&
            gap->since_ns < until_ns && gap->until_ns > since_ns)
            return false;
    }
    return true;
}

// Takes the extreme of a rollup, whose checksum is looked at.
static enum status take_rollup(struct search *search, const struct cell_key *key, double *promise,
                               struct error *err)
{
    struct ratio cell = {0}; // without a sketch
    enum status status = cell_add(&cell, key, search->rollup, 0, err);
    if (status != STATUS_OK)
        return status;
    search->found->rollups_read++;
    *promise = fmax(*promise, search->sign < 0 ? -cell.values.min : cell.values.max);
    return STATUS_OK;
}

// Reads what the series of a witness hold for a bucket into `*promise`, which stays
// as it is where there is none.
static enum status read_rollups(struct search *search, const struct witness *witness,
                                enum rollup_level level, int64_t bucket, double *promise,
                                struct error *err)
{
    sqlite3_stmt *stmt = search->rollup;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < witness->count && status == STATUS_OK; i++) {
        const struct cell_key key = {search->number, witness->grouping, level, bucket,
                                     witness->series[i]};
        (void)sqlite3_bind_int64(stmt, 1, (int)key.grouping);
        (void)sqlite3_bind_int64(stmt, 2, (int)key.level);
        (void)sqlite3_bind_int64(stmt, 3, key.started_ns);
        (void)sqlite3_bind_int64(stmt, 4, key.series);
        const int rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW)
            status = take_rollup(search, &key, promise, err);
        else if (rc != SQLITE_DONE)
            status = database_error(search->store->db, "store", err);
        (void)sqlite3_reset(stmt);
    }
    return status;
}

// ---- The search ------------------------------------------------------------------------

// The witness that has the bucket at this level, or NULL.
static const struct witness *witness_of(const struct search *search, enum rollup_level level,
                                        int64_t bucket, int64_t next)
{
    for (unsigned i = 0; i < search->witness_count; i++)
        if (is_kept(search, search->witnesses[i].grouping, level, bucket, next))
            return &search->witnesses[i];
    return NULL;
}

// Puts a stretch's buckets of the next finer level in its place; neighbours that have
// none are read as records together.
static enum status split(struct search *search, const struct stretch *whole, struct error *err)
{
    const enum rollup_level level = (enum rollup_level)(whole->level - 1);
    struct stretch unkept = {.promise = whole->promise, .level = LEVEL_RECORDS};
    enum status status = STATUS_OK;
    int64_t bucket = rollup_bucket(level, whole->since_ns);
    while (status == STATUS_OK && bucket < whole->until_ns) {
        const int64_t next = rollup_next(level, bucket);
        const int64_t since_ns = bucket > whole->since_ns ? bucket : whole->since_ns;
        const int64_t until_ns = next < whole->until_ns ? next : whole->until_ns;
        const struct witness *witness = witness_of(search, level, bucket, next);
        if (!witness) {
            if (unkept.until_ns != since_ns || unkept.since_ns == unkept.until_ns) {
                if (unkept.since_ns < unkept.until_ns)
                    status = push(search, unkept, err);
                unkept.since_ns = since_ns;
            }
            unkept.until_ns = until_ns;
        } else {
            double promise = -(double)INFINITY;
            status = read_rollups(search, witness, level, bucket, &promise, err);
            if (status == STATUS_OK && promise > least(search))
                status = push(search,
                              (struct stretch){.promise = fmin(promise, whole->promise),
                                               .since_ns = since_ns,
                                               .until_ns = until_ns,
                                               .level = level},
                              err);
        }
        if (next <= bucket || next == INT64_MAX)
            break; // the end of 64 bits
        bucket = next;
    }
    if (status == STATUS_OK && unkept.since_ns < unkept.until_ns)
        status = push(search, unkept, err);
    return status;
}

static enum status look_at_all(struct search *search, struct error *err)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && search->heap_count > 0) {
        const struct stretch stretch = pop(search);
        if (!(stretch.promise > least(search)))
            break;
        if (stretch.level == LEVEL_RECORDS || stretch.level == ROLLUP_MINUTE)
            status = read_records(search, &stretch, err);
        else
            status = split(search, &stretch, err);
        if (status == STATUS_OK && store_is_over_budget(search->store))
            status = error_set(err, STATUS_TIMEOUT, "store: the query takes too long");
    }
    return status;
}

// The window, less the times at its ends at which there is nothing.
static enum status read_window(struct search *search, const struct query_filter *filter,
                               bool *empty, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendall(sql, "SELECT ");
    store_append_bound(sql, search->store, search->metric->kind, false);
    sqlite3_str_appendall(sql, ", ");
    store_append_bound(sql, search->store, search->metric->kind, true);
    char *text = sqlite3_str_finish(sql);
    if (!text)
        return out_of_memory(err);
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(search->store->db, &stmt, text, false, err);
    sqlite3_free(text);
    if (status != STATUS_OK)
        return status;
    *empty = true;
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
        const int64_t first = sqlite3_column_int64(stmt, 0);
        const int64_t last = sqlite3_column_int64(stmt, 1);
        search->since_ns = filter->since_ns && filter->since_ns > first ? filter->since_ns : first;
        search->until_ns = last < INT64_MAX ? last + 1 : last;
        if (filter->until_ns && filter->until_ns < search->until_ns)
            search->until_ns = filter->until_ns;
        *empty = search->since_ns >= search->until_ns;
    }
    (void)sqlite3_finalize(stmt);
    return STATUS_OK;
}

static enum status read_watermark(struct search *search, struct error *err)
{
    search->number = rollup_metric_number(search->metric);
    char *text =
        sqlite3_mprintf("SELECT watermark FROM rollup_state WHERE metric = %d", search->number);
    if (!text)
        return out_of_memory(err);
    enum status status = database_integer(search->store->db, text, &search->watermark, err);
    sqlite3_free(text);
    if (status != STATUS_OK)
        return status;
    text = sqlite3_mprintf("SELECT " CELL_COLUMNS " FROM rollup WHERE metric = %d AND grouping = ?"
                           " AND level = ? AND started_ns = ? AND series = ?",
                           search->number);
    if (!text)
        return out_of_memory(err);
    status = database_prepare(search->store->db, &search->rollup, text, false, err);
    sqlite3_free(text);
    return status;
}

static enum status run_search(struct search *search, const struct query_filter *filter,
                              struct error *err)
{
    bool empty = true;
    enum status status = read_window(search, filter, &empty, err);
    if (status != STATUS_OK || empty)
        return status;
    status = read_watermark(search, err);
    if (status == STATUS_OK)
        status = read_tail(search, err);
    if (status != STATUS_OK || search->watermark <= 0)
        return status;
    status = read_gaps(search, err);
    if (status == STATUS_OK)
        status = find_witnesses(search, err);
    if (status == STATUS_OK)
        status = push(search,
                      (struct stretch){.promise = (double)INFINITY,
                                       .since_ns = search->since_ns,
                                       .until_ns = search->until_ns,
                                       .level = LEVEL_WINDOW},
                      err);
    return status == STATUS_OK ? look_at_all(search, err) : status;
}

enum status slowest_find(struct slowest *out, struct store *store,
                         const struct query_metric *metric, const struct query_filter *filter,
                         bool lowest, size_t wanted, struct error *err)
{
    assert(wanted > 0 && wanted <= SLOWEST_MAX);
    *out = (struct slowest){.values = calloc(wanted, sizeof *out->values)};
    if (!out->values)
        return out_of_memory(err);
    struct search search = {
        .store = store,
        .metric = metric,
        .filter = *filter,
        .found = out,
        .wanted = wanted,
        .sign = lowest ? -1 : 1,
    };
    search.filter.since_ns = 0;
    search.filter.until_ns = 0;
    enum status status = run_search(&search, filter, err);
    (void)sqlite3_finalize(search.records);
    (void)sqlite3_finalize(search.rollup);
    free(search.gaps);
    free(search.heap);
    for (size_t i = 0; i < out->count; i++)
        out->values[i].value *= search.sign;
    if (status != STATUS_OK)
        slowest_deinit(out);
    return status;
}

void slowest_deinit(struct slowest *slowest)
{
    free(slowest->values);
    *slowest = (struct slowest){0};
}
