#include "common/store/retention/clear.h"

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/filter.h"
#include "common/store/retention/expire.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/read/session.h"
#include "common/sys/log.h"

enum {
    IDS_LEAST = 256, // as fast as a commit, where the disk is slow
    IDS_FIRST = 512,
    PAGES_LEAST = 32,
    PAGES_FIRST = 128,
    PAGES_MOST = 4096,
};

static enum status ask_table(sqlite3 *db, const char *what, enum record_kind kind, int64_t *out,
                             struct error *err)
{
    return database_integerf(db, out, err, "SELECT %s FROM \"%s\"", what,
                             record_kind_info(kind)->name);
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
    int64_t first = 1;
    enum status status = STATUS_OK;
    if (clearing->kind != RECORD_KIND_RUN)
        status = ask_table(db, "min(id)", (enum record_kind)clearing->kind, &first, err);
    clearing->after = first - 1;
    return status;
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

enum status clear_begin_forget(struct clearing *clearing, sqlite3 *db, const struct query *query,
                               struct error *err)
{
    static const struct query_filter all;
    struct forget forget;
    enum status status = forget_begin(&forget, db, query, err);
    if (status == STATUS_OK)
        status = clear_begin(clearing, db, &all, err);
    clearing->forgets = true;
    clearing->forget = forget;
    return status;
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
    if (clearing->forgets)
        sqlite3_str_appendf(sql,
                            " AND t.run IN (SELECT r.run FROM run r WHERE %lld IN (0, r.run)"
                            " AND r.owner = %lld)",
                            (long long)clearing->forget.run, (long long)clearing->forget.owner);
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
                        " (WHERE t.id <= %lld AND " SCHEMA_PLACED_TIME " < %lld) AS kept",
                        (long long)rows->kept.last_id, (long long)rows->kept.until_ns);
    append_from(sql, rows);
    append_where(sql, rows);
    sqlite3_str_appendf(sql, " GROUP BY t.run) WHERE run = gone AND kind = %d", clearing->kind);
    return filter_run(db, sql, &clearing->filter, err);
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
    return filter_run(db, sql, &clearing->filter, err);
}

// ---- Rollups of what is cleared ------------------------------------------------------------

#define DAY_NS INT64_C(86400000000000)

// More days in a slice than that are joined with the days between them, which are only rebuilt in
// vain.
enum { SPANS_MAX = 64 };

struct days {
    struct gap_span spans[SPANS_MAX]; // ascending
    size_t count;
};

static void add_day(struct days *days, int64_t started_ns)
{
    const int64_t day_ns = rollup_bucket(ROLLUP_DAY, started_ns);
    const int64_t next_ns = rollup_next(ROLLUP_DAY, day_ns);
    struct gap_span *last = days->count > 0 ? &days->spans[days->count - 1] : NULL;
    if (last && (last->until_ns == day_ns || days->count == SPANS_MAX))
        last->until_ns = next_ns;
    else
        days->spans[days->count++] = (struct gap_span){day_ns, next_ns};
}

// The days of the slice's records that rollups are to count no longer.
static enum status find_days(const struct rows *rows, sqlite3 *db, struct days *days,
                             struct error *err)
{
    const struct clearing *clearing = rows->clearing;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_stmt *stmt = NULL;
    sqlite3_str_appendall(sql, "SELECT min(" SCHEMA_PLACED_TIME ")");
    append_from(sql, rows);
    append_where(sql, rows);
    sqlite3_str_appendf(sql,
                        " AND t.id <= %lld AND " SCHEMA_PLACED_TIME " >= %lld"
                        " GROUP BY " SCHEMA_PLACED_TIME " / %lld ORDER BY 1",
                        (long long)rows->kept.last_id, (long long)rows->kept.until_ns,
                        (long long)DAY_NS);
    enum status status = filter_prepare(db, &stmt, sql, &clearing->filter, err);
    while (database_step(db, stmt, &status, err))
        add_day(days, sqlite3_column_int64(stmt, 0));
    (void)sqlite3_finalize(stmt);
    return status;
}

// Marks rollups that count cleared records as unusable until their days are rebuilt.  The sums of
// days that have begun to expire stay as they are.
static enum status mark_rollups(const struct rows *rows, sqlite3 *db, struct error *err)
{
    const enum record_kind kind = (enum record_kind)rows->clearing->kind;
    struct days days = {.count = 0};
    if (!rollup_has_kind(kind))
        return STATUS_OK;
    enum status status = find_days(rows, db, &days, err);
    return status == STATUS_OK ? gap_request_rebuild(db, kind, days.spans, days.count, err)
                               : status;
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
    struct error err;
    struct expire_room before = {0}, after = {0};
    enum status status = expire_room(db, &before, &err);
    if (status == STATUS_OK)
        status = expire_give_back(db, clearing->pages.now, &err);
    if (status == STATUS_OK)
        status = expire_room(db, &after, &err);
    if (status != STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "the room of what was cleared is not given back: %s",
                  err.text);
    return status != STATUS_OK || after.free == 0 || after.free >= before.free;
}

enum status clear_slice(struct clearing *clearing, sqlite3 *db, bool *done, struct error *err)
{
    unsigned gone = 0;
    bool forgot = true;
    *done = false;
    clearing->is_whole = clearing->kind == RECORD_KIND_RUN;
    if (clearing->kind != RECORD_KIND_RUN)
        return clearing->after < clearing->last[clearing->kind]
                   ? clear_in_transaction(clearing, db, err)
                   : next_kind(clearing, db, err);
    enum status status = STATUS_OK;
    if (clearing->forgets)
        status = forget_slice(&clearing->forget, db, clearing->pages.now, &gone, &forgot, err);
    if (status == STATUS_OK && forgot)
        *done = give_back(clearing, db);
    return status;
}

void clear_took(struct clearing *clearing, uint64_t took_ns)
{
    struct slice_size *size =
        clearing->kind == RECORD_KIND_RUN ? &clearing->pages : &clearing->slice;
    if (clearing->is_whole || took_ns > CLEAR_SLICE_NS)
        slice_size_adapt(size, took_ns, CLEAR_SLICE_NS);
}

enum status clear_answer(struct result **out, const struct clearing *clearing, struct error *err)
{
    static const struct answer_column columns[] = {
        {"cleared", UNIT_COUNT}, {"runs", UNIT_COUNT}, {"names", UNIT_COUNT}};
    struct result *answer = NULL;
    enum status status = answer_new(&answer, columns, clearing->forgets ? 3 : 1, err);
    if (status != STATUS_OK)
        return status;
    answer_row(answer);
    answer_int(answer, "cleared", (int64_t)clearing->cleared);
    if (clearing->forgets) {
        answer_int(answer, "runs", clearing->forget.runs);
        answer_int(answer, "names", clearing->forget.names);
    }
    status = answer_check(answer, err);
    if (status == STATUS_OK)
        *out = answer;
    else
        result_free(answer);
    return status;
}

static enum status clear_file(struct store *store, struct sqlite3 *db, const struct query *query,
                              void *out, int64_t *rows, struct error *err)
{
    struct clearing *clearing = out;
    bool done = false;
    (void)store;
    enum status status = query->kind == QUERY_FORGET
                             ? clear_begin_forget(clearing, db, query, err)
                             : clear_begin(clearing, db, &query->filter, err);
    clearing->slice.now = CLEAR_SLICE; // no job waits
    clearing->pages.now = PAGES_MOST;
    while (status == STATUS_OK && !done)
        status = clear_slice(clearing, db, &done, err);
    *rows = (int64_t)clearing->cleared;
    return status;
}

enum status store_clear(const char *path, const struct query *query, struct result **out,
                        struct error *err)
{
    struct clearing clearing = {0};
    enum status status = session_change_file(path, query, clear_file, &clearing, err);
    return status == STATUS_OK ? clear_answer(out, &clearing, err) : status;
}
