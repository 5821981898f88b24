#include "common/store/rollup/gap_table.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/sqlite/database.h"

#define SAME_SORT " kind = ?1 AND grouping = ?2 AND level = ?3 AND why = ?6"

// Runs two or three statements with a gap's columns bound to ?1 to ?6.
static enum status run_all(sqlite3 *db, const char *const *steps, size_t count,
                           const struct gap *gap, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK && gap->since_ns < gap->until_ns; i++) {
        sqlite3_stmt *stmt = NULL;
        status = database_prepare(db, &stmt, steps[i], false, err);
        if (status != STATUS_OK)
            break;
        database_bind(stmt,
                      (int64_t[]){(int64_t)gap->kind, (int64_t)gap->grouping, (int64_t)gap->level,
                                  gap->since_ns, gap->until_ns, (int64_t)gap->why},
                      6);
        status = database_run(db, stmt, err);
        (void)sqlite3_finalize(stmt);
    }
    return status;
}

// The last gap of the sort that starts at or before it: those of a sort lie apart from
// each other, so none before that one touches it, however many there are.
#define BEFORE                                                                                     \
    "(SELECT since_ns FROM rollup_gap WHERE" SAME_SORT                                             \
    " AND since_ns <= ?4 ORDER BY since_ns DESC LIMIT 1)"

enum status gap_add(sqlite3 *db, const struct gap *gap, struct error *err)
{
    // The union of it and those that touch it goes in first, in place of the first of them;
    // then what it covers goes.
    static const char *const steps[] = {
        "INSERT OR REPLACE INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
        " SELECT ?1, ?2, ?3, min(coalesce(min(since_ns), ?4), ?4),"
        " max(coalesce(max(until_ns), ?5), ?5), ?6 FROM rollup_gap"
        " WHERE" SAME_SORT " AND since_ns BETWEEN coalesce(" BEFORE ", ?4) AND ?5"
        " AND until_ns >= ?4",
        "DELETE FROM rollup_gap WHERE" SAME_SORT " AND since_ns > " BEFORE " AND since_ns <= ?5",
    };
    return run_all(db, steps, sizeof steps / sizeof *steps, gap, err);
}

enum status gap_remove(sqlite3 *db, const struct gap *gap, struct error *err)
{
    static const char *const steps[] = {
        "INSERT OR REPLACE INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
        " SELECT kind, grouping, level, ?5, until_ns, why FROM rollup_gap"
        " WHERE" SAME_SORT " AND since_ns < ?5 AND until_ns > ?5",
        "UPDATE rollup_gap SET until_ns = ?4 WHERE" SAME_SORT
        " AND since_ns < ?4 AND until_ns > ?4",
        "DELETE FROM rollup_gap WHERE" SAME_SORT " AND since_ns >= ?4 AND since_ns < ?5",
    };
    return run_all(db, steps, sizeof steps / sizeof *steps, gap, err);
}

enum status gap_each_grouping(sqlite3 *db, gap_change *change, struct gap gap, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++) {
        gap.grouping = (enum rollup_grouping)g;
        status = change(db, &gap, err);
    }
    return status;
}

enum status gap_drop_months(sqlite3 *db, enum record_kind kind, const struct gap_span *span,
                            struct error *err)
{
    const int64_t last = rollup_bucket(ROLLUP_MONTH, span->until_ns - 1);
    const struct gap gap = {.kind = kind,
                            .level = ROLLUP_MONTHS_ALONE,
                            .since_ns = rollup_bucket(ROLLUP_MONTH, span->since_ns),
                            .until_ns = rollup_next(ROLLUP_MONTH, last),
                            .why = ROLLUP_SPARSE};
    return gap_each_grouping(db, gap_add, gap, err);
}

enum status gap_request_rebuild(sqlite3 *db, enum record_kind kind, const struct gap_span *spans,
                                size_t count, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct gap gap = {.kind = kind,
                                .level = ROLLUP_MONTH,
                                .since_ns = spans[i].since_ns,
                                .until_ns = spans[i].until_ns,
                                .why = ROLLUP_CLEARED};
        if (spans[i].since_ns >= spans[i].until_ns)
            continue;
        status = gap_each_grouping(db, gap_add, gap, err);
        if (status == STATUS_OK)
            status = gap_drop_months(db, kind, &spans[i], err);
    }
    return status;
}

enum status gap_erase(sqlite3 *db, const char *where, const struct gap_span *span, unsigned count,
                      unsigned *gone, struct error *err)
{
    enum status status =
        database_execf(db, err,
                       "DELETE FROM rollup WHERE (metric, grouping, level, started_ns, series) IN"
                       " (SELECT metric, grouping, level, started_ns, series FROM rollup"
                       " WHERE metric IN (SELECT metric FROM rollup_state) AND %s"
                       " AND started_ns >= %lld AND started_ns < %lld LIMIT %u)",
                       where, (long long)span->since_ns, (long long)span->until_ns, count);
    *gone = status == STATUS_OK ? (unsigned)sqlite3_changes(db) : 0;
    return status;
}

enum status gap_last_id(sqlite3 *db, enum record_kind kind, int64_t *id, struct error *err)
{
    return database_integerf(db, id, err,
                             "SELECT max(coalesce((SELECT max(id) FROM \"%s\"), 0),"
                             " coalesce((SELECT max(max(watermark, ahead_id)) FROM rollup_state"
                             " WHERE metric BETWEEN %d AND %d), 0))",
                             record_kind_info(kind)->name, 256 * (int)kind, 256 * (int)kind + 255);
}

enum status gap_read_expired(sqlite3 *db, enum record_kind kind, int64_t *until_ns,
                             struct error *err)
{
    return database_integerf(db, until_ns, err,
                             "SELECT coalesce(max(until_ns), %lld) FROM expiry WHERE kind = %d",
                             (long long)INT64_MIN, (int)kind);
}

enum status gap_read_kept(sqlite3 *db, enum record_kind kind, struct gap_kept *kept,
                          struct error *err)
{
    enum status status = gap_read_expired(db, kind, &kept->until_ns, err);
    if (status == STATUS_OK)
        status = database_integerf(db, &kept->last_id, err,
                                   "SELECT max(max(watermark, ahead_id)) FROM rollup_state"
                                   " WHERE metric BETWEEN %d AND %d",
                                   256 * (int)kind, 256 * (int)kind + 255);
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

enum status gap_set_add(struct gap_set *set, enum rollup_level level, int64_t since_ns,
                        int64_t until_ns)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < ROLLUP_LEVEL_COUNT && status == STATUS_OK; i++)
        if (since_ns < until_ns && (level == ROLLUP_MONTHS_ALONE ? i == ROLLUP_MONTH : i <= level))
            status = append(set, i, since_ns, until_ns);
    return status;
}

enum { GAP_LEVEL, GAP_SINCE, GAP_UNTIL, GAP_WHY };

static enum status read_row(struct gap_set *set, sqlite3_stmt *row, const struct gap_span *but,
                            struct error *err)
{
    const int64_t number = sqlite3_column_int64(row, GAP_LEVEL);
    const int64_t since_ns = sqlite3_column_int64(row, GAP_SINCE);
    const int64_t until_ns = sqlite3_column_int64(row, GAP_UNTIL);
    const int64_t why = sqlite3_column_int64(row, GAP_WHY);
    if (number < 0 || number > ROLLUP_MONTHS_ALONE)
        return error_set(err, STATUS_CORRUPT, "store: a gap of rollups of no level");
    const enum rollup_level level = (enum rollup_level)number;
    const bool is_cut = (why == ROLLUP_CLEARED || why == ROLLUP_EXPIRING) &&
                        but->since_ns < until_ns && but->until_ns > since_ns;
    enum status status = gap_set_add(set, level, since_ns, is_cut ? but->since_ns : until_ns);
    if (status == STATUS_OK && is_cut)
        status = gap_set_add(set, level, but->until_ns, until_ns);
    return status == STATUS_OK ? status : error_no_memory(err, "store");
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
    // Devices and hosts have no months of their own: their days are read.
    if (!rollup_has_sketches(kind) && grouping == ROLLUP_FULL &&
        gap_set_add(set, ROLLUP_MONTHS_ALONE, INT64_MIN, INT64_MAX) != STATUS_OK)
        status = error_no_memory(err, "store");
    database_bind(stmt, (int64_t[]){(int64_t)kind, (int64_t)grouping}, 2);
    while (status == STATUS_OK && database_step(db, stmt, &status, err))
        status = read_row(set, stmt, but, err);
    (void)sqlite3_finalize(stmt);
    if (status != STATUS_OK)
        gap_set_deinit(set);
    return status;
}

const struct gap_span *gap_set_behind(const struct gap_set *set, enum rollup_level level,
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
    const struct gap_span *span = gap_set_behind(set, level, since_ns);
    return span && span->since_ns <= since_ns && span->until_ns >= until_ns;
}

bool gap_set_touches(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                     int64_t until_ns)
{
    const struct gap_span *span = gap_set_behind(set, level, since_ns);
    return span && span->since_ns < until_ns;
}
