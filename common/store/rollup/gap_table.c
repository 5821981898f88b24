#include "common/store/rollup/gap_table.h"

#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/sqlite/database.h"

#define SAME_SORT " kind = ?1 AND grouping = ?2 AND level = ?3 AND why = ?6"

// Binds a gap's columns to ?1 to ?6, its times to be those of the span, and runs it.
static enum status run_bound(sqlite3 *db, sqlite3_stmt *stmt, const struct gap *gap,
                             const struct gap_span *span, struct error *err)
{
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)gap->kind);
    (void)sqlite3_bind_int64(stmt, 2, (int64_t)gap->grouping);
    (void)sqlite3_bind_int64(stmt, 3, (int64_t)gap->level);
    (void)sqlite3_bind_int64(stmt, 4, span->since_ns);
    (void)sqlite3_bind_int64(stmt, 5, span->until_ns);
    (void)sqlite3_bind_int64(stmt, 6, (int64_t)gap->why);
    return database_run(db, stmt, err);
}

static enum status run_with(sqlite3 *db, const char *sql, const struct gap *gap, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt, sql, false, err);
    if (status != STATUS_OK)
        return status;
    status = run_bound(db, stmt, gap, &(struct gap_span){gap->since_ns, gap->until_ns}, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// The last gap of the sort that starts at or before it: those of a sort lie apart from
// each other, so none before that one touches it, however many there are.
#define BEFORE                                                                                     \
    "(SELECT since_ns FROM rollup_gap WHERE" SAME_SORT                                             \
    " AND since_ns <= ?4 ORDER BY since_ns DESC LIMIT 1)"

// The union of it and those that touch it goes in first, in place of the first of them;
// then what it covers goes.
static enum status gap_add_spans(sqlite3 *db, const struct gap *gap, const struct gap_span *spans,
                                 size_t count, struct error *err)
{
    static const char add[] =
        "INSERT OR REPLACE INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
        " SELECT ?1, ?2, ?3, min(coalesce(min(since_ns), ?4), ?4),"
        " max(coalesce(max(until_ns), ?5), ?5), ?6 FROM rollup_gap"
        " WHERE" SAME_SORT " AND since_ns BETWEEN coalesce(" BEFORE ", ?4) AND ?5"
        " AND until_ns >= ?4";
    static const char absorb[] =
        "DELETE FROM rollup_gap WHERE" SAME_SORT " AND since_ns > " BEFORE " AND since_ns <= ?5";
    sqlite3_stmt *steps[2] = {NULL, NULL};
    enum status status = database_prepare(db, &steps[0], add, false, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &steps[1], absorb, false, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        if (spans[i].since_ns >= spans[i].until_ns)
            continue;
        status = run_bound(db, steps[0], gap, &spans[i], err);
        if (status == STATUS_OK)
            status = run_bound(db, steps[1], gap, &spans[i], err);
    }
    (void)sqlite3_finalize(steps[0]);
    (void)sqlite3_finalize(steps[1]);
    return status;
}

enum status gap_add(sqlite3 *db, const struct gap *gap, struct error *err)
{
    return gap_add_spans(db, gap, &(struct gap_span){gap->since_ns, gap->until_ns}, 1, err);
}

enum status gap_remove(sqlite3 *db, const struct gap *gap, struct error *err)
{
    static const char after[] =
        "INSERT OR REPLACE INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
        " SELECT kind, grouping, level, ?5, until_ns, why FROM rollup_gap"
        " WHERE" SAME_SORT " AND since_ns < ?5 AND until_ns > ?5";
    static const char before[] = "UPDATE rollup_gap SET until_ns = ?4 WHERE" SAME_SORT
                                 " AND since_ns < ?4 AND until_ns > ?4";
    static const char within[] =
        "DELETE FROM rollup_gap WHERE" SAME_SORT " AND since_ns >= ?4 AND since_ns < ?5";
    if (gap->since_ns >= gap->until_ns)
        return STATUS_OK;
    static const char *const steps[] = {after, before, within};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++)
        status = run_with(db, steps[i], gap, err);
    return status;
}

enum status gap_request_rebuild(sqlite3 *db, enum record_kind kind, const struct gap_span *spans,
                                size_t count, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++) {
        struct gap gap = {.kind = kind,
                          .grouping = (enum rollup_grouping)g,
                          .level = ROLLUP_MONTH,
                          .why = ROLLUP_CLEARED};
        status = gap_add_spans(db, &gap, spans, count, err);
        // Months are not rebuilt: their days are read instead.
        gap.level = ROLLUP_MONTHS_ALONE;
        gap.why = ROLLUP_SPARSE;
        for (size_t i = 0; i < count && status == STATUS_OK; i++) {
            const int64_t last = rollup_bucket(ROLLUP_MONTH, spans[i].until_ns - 1);
            gap.since_ns = rollup_bucket(ROLLUP_MONTH, spans[i].since_ns);
            gap.until_ns = rollup_next(ROLLUP_MONTH, last);
            if (spans[i].since_ns < spans[i].until_ns)
                status = gap_add(db, &gap, err);
        }
    }
    return status;
}

enum status gap_last_id(sqlite3 *db, enum record_kind kind, int64_t *id, struct error *err)
{
    char sql[384];
    (void)snprintf(sql, sizeof sql,
                   "SELECT max(coalesce((SELECT max(id) FROM \"%s\"), 0),"
                   " coalesce((SELECT max(watermark) FROM rollup_state"
                   " WHERE metric BETWEEN %d AND %d), 0))",
                   record_kind_info(kind)->name, 256 * (int)kind, 256 * (int)kind + 255);
    return database_integer(db, sql, id, err);
}

enum status gap_read_kept(sqlite3 *db, enum record_kind kind, struct gap_kept *kept,
                          struct error *err)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(max(until_ns), %lld) FROM expiry"
                   " WHERE kind = %d",
                   (long long)INT64_MIN, (int)kind);
    enum status status = database_integer(db, sql, &kept->until_ns, err);
    (void)snprintf(sql, sizeof sql,
                   "SELECT max(watermark) FROM rollup_state WHERE metric BETWEEN %d AND %d",
                   256 * (int)kind, 256 * (int)kind + 255);
    if (status == STATUS_OK)
        status = database_integer(db, sql, &kept->last_id, err);
    if (status == STATUS_OK && kept->last_id > 0 && kept->until_ns != INT64_MIN)
        kept->until_ns = rollup_next(ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, kept->until_ns - 1));
    return status;
}

// ---- In memory ---------------------------------------------------------------------------

void gap_set_deinit(struct gap_set *set)
{
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++)
        free(set->spans[level]);
    *set = (struct gap_set){0};
}

// Spans come rising by their start: one touches the last or lies behind it.
static enum status append(struct gap_set *set, unsigned level, int64_t since_ns, int64_t until_ns)
{
    const size_t count = set->count[level];
    struct gap_span *last = count > 0 ? &set->spans[level][count - 1] : NULL;
    if (last && since_ns <= last->until_ns) {
        last->until_ns = until_ns > last->until_ns ? until_ns : last->until_ns;
        return STATUS_OK;
    }
    if (!ARRAY_RESERVE(&set->spans[level], &set->room[level], count + 1))
        return STATUS_NOMEM;
    set->spans[level][set->count[level]++] = (struct gap_span){since_ns, until_ns};
    return STATUS_OK;
}

static enum status append_levels(struct gap_set *set, int64_t coarsest, int64_t since_ns,
                                 int64_t until_ns)
{
    enum status status = STATUS_OK;
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++)
        if (since_ns < until_ns && rollup_gap_covers(coarsest, (enum rollup_level)level))
            status = append(set, level, since_ns, until_ns);
    return status;
}

enum { GAP_LEVEL, GAP_SINCE, GAP_UNTIL, GAP_WHY };

static enum status take_row(struct gap_set *set, sqlite3_stmt *row, const struct gap_span *but)
{
    const int64_t level = sqlite3_column_int64(row, GAP_LEVEL);
    const int64_t since_ns = sqlite3_column_int64(row, GAP_SINCE);
    const int64_t until_ns = sqlite3_column_int64(row, GAP_UNTIL);
    const int64_t why = sqlite3_column_int64(row, GAP_WHY);
    if ((why == ROLLUP_CLEARED || why == ROLLUP_EXPIRING) && but->since_ns < until_ns &&
        but->until_ns > since_ns) {
        const enum status status = append_levels(set, level, since_ns, but->since_ns);
        return status == STATUS_OK ? append_levels(set, level, but->until_ns, until_ns) : status;
    }
    return append_levels(set, level, since_ns, until_ns);
}

enum status gap_set_read(struct gap_set *set, sqlite3 *db, enum record_kind kind,
                         enum rollup_grouping grouping, const struct gap_span *but,
                         struct error *err)
{
    gap_set_deinit(set);
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt,
                                          "SELECT level, since_ns, until_ns, why FROM rollup_gap"
                                          " WHERE kind = ?1 AND grouping = ?2 ORDER BY since_ns",
                                          false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)kind);
    (void)sqlite3_bind_int64(stmt, 2, (int64_t)grouping);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = take_row(set, stmt, but) == STATUS_OK ? STATUS_OK : error_no_memory(err, "store");
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    if (status != STATUS_OK)
        gap_set_deinit(set);
    return status;
}

// The first span of a level that ends behind a time, or NULL.
static const struct gap_span *span_behind(const struct gap_set *set, enum rollup_level level,
                                          int64_t time_ns)
{
    const struct gap_span *spans = set->spans[level];
    size_t low = 0, high = set->count[level];
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (spans[middle].until_ns > time_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low < set->count[level] ? &spans[low] : NULL;
}

bool gap_set_covers(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                    int64_t until_ns)
{
    const struct gap_span *span = span_behind(set, level, since_ns);
    return span && span->since_ns <= since_ns && span->until_ns >= until_ns;
}

bool gap_set_touches(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                     int64_t until_ns)
{
    const struct gap_span *span = span_behind(set, level, since_ns);
    return span && span->since_ns < until_ns;
}
