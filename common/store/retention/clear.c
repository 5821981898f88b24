#include "common/store/retention/clear.h"

#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/filter.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/sqlite/lock.h"
#include "common/store/read/session.h"
#include "common/sys/log.h"
#include "common/store/schema/database_open.h"

enum {
    IDS_LEAST = 256, // as fast as a commit, where the disk is slow
    IDS_FIRST = 512,
    PAGES_LEAST = 32,
    PAGES_FIRST = 128,
    PAGES_MOST = 4096,
};

static enum status run_filtered(sqlite3 *db, sqlite3_str *sql, const struct query_filter *filter,
                                struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = filter_prepare(db, &stmt, sql, filter, err);
    if (status == STATUS_OK)
        status = database_run(db, stmt, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// One integer about a kind's table.
static enum status ask_table(sqlite3 *db, const char *what, enum record_kind kind, int64_t *out,
                             struct error *err)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM \"%s\"", what, record_kind_info(kind)->name);
    return database_integer(db, sql, out, err);
}

static enum status begin_rows(struct clearing *clearing, sqlite3 *db, struct error *err)
{
    int64_t first = 0;
    enum status status = ask_table(db, "min(id)", (enum record_kind)clearing->kind, &first, err);
    clearing->after = first - 1;
    return status;
}

// Goes on to the next kind that the filter covers, from the last to the first:
// stages know their model by their load, so they go before it.
static enum status next_kind(struct clearing *clearing, sqlite3 *db, struct error *err)
{
    enum query_dimension missing;
    do
        clearing->kind--;
    while (clearing->kind > RECORD_KIND_RUN &&
           !filter_applies((enum record_kind)clearing->kind, &clearing->filter, &missing));
    clearing->after = 0;
    if (clearing->kind == RECORD_KIND_RUN)
        return STATUS_OK;
    return begin_rows(clearing, db, err);
}

enum status clear_begin(struct clearing *clearing, sqlite3 *db, const struct query_filter *filter,
                        struct error *err)
{
    *clearing = (struct clearing){.filter = *filter,
                                  .kind = RECORD_KIND_COUNT,
                                  .slice = {IDS_FIRST, IDS_LEAST, CLEAR_SLICE_BUSY},
                                  .pages = {PAGES_FIRST, PAGES_LEAST, PAGES_MOST}};
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = ask_table(db, "max(id)", (enum record_kind)kind, &clearing->last[kind], err);
    return status == STATUS_OK ? next_kind(clearing, db, err) : status;
}

// The rows of a slice.  Ids bound the work whatever the filter finds, without any other
// index.
struct rows {
    const struct clearing *clearing;
    int64_t first, last;
    struct gap_kept kept; // of the kind
};

static struct rows slice_of(const struct clearing *clearing)
{
    const int64_t last = clearing->last[clearing->kind];
    const bool is_last = last - clearing->after < clearing->slice.now;
    return (struct rows){.clearing = clearing,
                         .first = clearing->after + 1,
                         .last = is_last ? last : clearing->after + clearing->slice.now};
}

static void append_from(sqlite3_str *sql, const struct rows *rows)
{
    const char *name = record_kind_info((enum record_kind)rows->clearing->kind)->name;
    sqlite3_str_appendf(sql, " FROM \"%w\" t NOT INDEXED", name);
}

static void append_where(sqlite3_str *sql, const struct rows *rows)
{
    const struct clearing *clearing = rows->clearing;
    filter_where(sql, (enum record_kind)clearing->kind, &clearing->filter);
    sqlite3_str_appendf(sql, " AND t.id BETWEEN %lld AND %lld", (long long)rows->first,
                        (long long)rows->last);
}

// Rows that rollups go on counting become expired ones: an import does not bring them again.
static enum status count_cleared(const struct rows *rows, sqlite3 *db, struct error *err)
{
    const struct clearing *clearing = rows->clearing;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql,
                        "UPDATE ledger SET cleared = cleared + n - kept, expired = expired + kept,"
                        " gone_sum = set_hash_add(gone_sum, sum) FROM (SELECT t.run AS gone,"
                        " count(*) AS n, set_hash(t.stream, t.number) AS sum, count(*) FILTER"
                        " (WHERE t.id <= %lld AND t.started_ns < %lld) AS kept",
                        (long long)rows->kept.last_id, (long long)rows->kept.until_ns);
    append_from(sql, rows);
    append_where(sql, rows);
    sqlite3_str_appendf(sql, " GROUP BY t.run) WHERE run = gone AND kind = %d", clearing->kind);
    return run_filtered(db, sql, &clearing->filter, err);
}

static enum status clear_some(const struct rows *rows, sqlite3 *db, struct error *err)
{
    const struct clearing *clearing = rows->clearing;
    enum status status = count_cleared(rows, db, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "DELETE FROM \"%w\" AS t NOT INDEXED",
                        record_kind_info((enum record_kind)clearing->kind)->name);
    append_where(sql, rows);
    return run_filtered(db, sql, &clearing->filter, err);
}

// ---- Rollups of what is cleared ------------------------------------------------------------

#define HOUR_NS INT64_C(3600000000000)

// Hours that follow each other, by number; more spans than that are joined over what
// lies between, which is only made again for nothing.
enum { SPANS_MAX = 64 };

struct hours {
    struct hour_span {
        int64_t first, last;
    } * list;
    size_t count, room;
};

static enum status add_hour(struct hours *hours, int64_t hour, struct error *err)
{
    if (hours->count > 0 && hours->list[hours->count - 1].last >= hour - 1) {
        hours->list[hours->count - 1].last = hour;
        return STATUS_OK;
    }
    if (!ARRAY_RESERVE(&hours->list, &hours->room, hours->count + 1))
        return error_no_memory(err, "store");
    hours->list[hours->count++] = (struct hour_span){hour, hour};
    return STATUS_OK;
}

static void join_hours(struct hours *hours)
{
    for (int64_t apart = 2; hours->count > SPANS_MAX; apart *= 2) {
        size_t kept = 0;
        for (size_t i = 1; i < hours->count; i++) {
            if (hours->list[i].first - hours->list[kept].last <= apart)
                hours->list[kept].last = hours->list[i].last;
            else
                hours->list[++kept] = hours->list[i];
        }
        hours->count = kept + 1;
    }
}

// The hours of the slice's records that rollups are to count no longer, rising.
static enum status find_hours(const struct rows *rows, sqlite3 *db, struct hours *hours,
                              struct error *err)
{
    const struct clearing *clearing = rows->clearing;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_stmt *stmt = NULL;
    sqlite3_str_appendf(sql, "SELECT DISTINCT t.started_ns / %lld - (t.started_ns %% %lld < 0)",
                        (long long)HOUR_NS, (long long)HOUR_NS);
    append_from(sql, rows);
    append_where(sql, rows);
    sqlite3_str_appendf(sql, " AND t.id <= %lld AND t.started_ns >= %lld ORDER BY 1",
                        (long long)rows->kept.last_id, (long long)rows->kept.until_ns);
    enum status status = filter_prepare(db, &stmt, sql, &clearing->filter, err);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = add_hour(hours, sqlite3_column_int64(stmt, 0), err);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

static int64_t hour_start(int64_t hour)
{
    int64_t ns;
    if (__builtin_mul_overflow(hour, HOUR_NS, &ns))
        return hour < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

static enum status add_gaps(const struct clearing *clearing, sqlite3 *db, const struct hours *hours,
                            struct error *err)
{
    struct gap_span spans[SPANS_MAX];
    for (size_t i = 0; i < hours->count; i++)
        spans[i] = (struct gap_span){hour_start(hours->list[i].first),
                                     hour_start(hours->list[i].last + 1)};
    return gap_request_rebuild(db, (enum record_kind)clearing->kind, spans, hours->count, err);
}

// Marks rollups that count cleared records as unusable until their days are rebuilt.  The sums of
// days that have begun to expire stay as they are.
static enum status mark_rollups(const struct rows *rows, sqlite3 *db, struct error *err)
{
    const struct clearing *clearing = rows->clearing;
    struct hours hours = {0};
    if (!rollup_has_kind((enum record_kind)clearing->kind))
        return STATUS_OK;
    enum status status = find_hours(rows, db, &hours, err);
    if (status == STATUS_OK)
        join_hours(&hours);
    if (status == STATUS_OK)
        status = add_gaps(clearing, db, &hours, err);
    free(hours.list);
    return status;
}

// ---- Slices ----------------------------------------------------------------------------------

static enum status clear_in_transaction(struct clearing *clearing, sqlite3 *db, struct error *err)
{
    enum status status = database_exec(db, "BEGIN IMMEDIATE", err);
    struct rows slice = slice_of(clearing);
    uint64_t rows = 0;
    if (status == STATUS_OK)
        status = gap_read_kept(db, (enum record_kind)clearing->kind, &slice.kept, err);
    if (status == STATUS_OK)
        status = mark_rollups(&slice, db, err);
    if (status == STATUS_OK)
        status = clear_some(&slice, db, err);
    if (status == STATUS_OK)
        rows = (uint64_t)sqlite3_changes64(db);
    status = database_end(db, status, err);
    if (status != STATUS_OK)
        return status;
    clearing->cleared += rows;
    clearing->is_whole = clearing->last[clearing->kind] - clearing->after >= clearing->slice.now;
    clearing->after += clearing->slice.now;
    return STATUS_OK;
}

// Gives back some of the free pages; true when that was the last of it.  What
// cannot be given back is used again: no reason to call the clearing failed.
static bool give_back(struct clearing *clearing, sqlite3 *db)
{
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%u)", clearing->pages.now);
    struct error err;
    int64_t before = 0, left = 0;
    enum status status = database_integer(db, "PRAGMA freelist_count", &before, &err);
    if (status == STATUS_OK)
        status = database_exec(db, sql, &err);
    if (status == STATUS_OK)
        status = database_integer(db, "PRAGMA freelist_count", &left, &err);
    if (status != STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "the room of what was cleared is not given back: %s",
                  err.text);
    return status != STATUS_OK || left == 0 || left >= before;
}

enum status clear_slice(struct clearing *clearing, sqlite3 *db, bool *done, struct error *err)
{
    *done = false;
    clearing->is_whole = clearing->kind == RECORD_KIND_RUN;
    if (clearing->kind == RECORD_KIND_RUN) {
        *done = give_back(clearing, db);
        return STATUS_OK;
    }
    if (clearing->after < clearing->last[clearing->kind])
        return clear_in_transaction(clearing, db, err);
    return next_kind(clearing, db, err);
}

void clear_took(struct clearing *clearing, uint64_t took_ns)
{
    struct slice_size *size =
        clearing->kind == RECORD_KIND_RUN ? &clearing->pages : &clearing->slice;
    if (clearing->is_whole || took_ns > CLEAR_SLICE_NS)
        slice_size_adapt(size, took_ns, CLEAR_SLICE_NS);
}

static enum status clear_rows(sqlite3 *db, const struct query_filter *filter, uint64_t *cleared,
                              struct error *err)
{
    struct clearing clearing;
    bool done = false;
    enum status status = clear_begin(&clearing, db, filter, err);
    clearing.slice.now = CLEAR_SLICE; // no job waits
    clearing.pages.now = PAGES_MOST;
    while (status == STATUS_OK && !done)
        status = clear_slice(&clearing, db, &done, err);
    *cleared = clearing.cleared;
    return status;
}

enum status store_clear(const char *path, const struct query_filter *filter, uint64_t *cleared,
                        struct error *err)
{
    const struct query query = {.kind = QUERY_CLEAR, .filter = *filter};
    enum status status = query_check(&query, err);
    if (status != STATUS_OK)
        return status;
    // Looks before it locks: no lock file beside what is no store.
    struct store *store = NULL;
    status = store_open(&store, path, err);
    store_close(store);
    if (status != STATUS_OK)
        return status;
    struct lock lock = LOCK_NONE;
    sqlite3 *db = NULL;
    status = lock_take_store(&lock, path, err);
    if (status == STATUS_OK)
        status = database_open_writer(&db, path, err);
    if (status == STATUS_OK)
        status = clear_rows(db, filter, cleared, err);
    database_close(db);
    lock_withdraw(&lock);
    return status;
}
