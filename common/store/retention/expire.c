#include "common/store/retention/expire.h"

#include <assert.h>
#include <stdio.h>

#include <sqlite3.h>

#include "common/store/schema/schema.h"
#include "common/store/sqlite/database.h"
#include "common/store/rollup/gap_table.h"

enum { METRICS_PER_KIND = 256, DAYS_PER_LOOK = 40 };

// ---- Who may go ----------------------------------------------------------------------

bool expire_has_kind(enum record_kind kind)
{
    return kind != RECORD_KIND_RUN && kind != RECORD_KIND_DEVICE && kind != RECORD_KIND_MODEL;
}

enum status expire_last_id(sqlite3 *db, enum record_kind kind, int64_t *out, struct error *err)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_has_kind(kind) ? rollup_metrics(kind, metrics) : 0;
    *out = count == 0 ? INT64_MAX : 0;
    if (count == 0)
        return STATUS_OK;
    // Where a metric has no watermark, none of the kind's rows is in all rollups.
    static const char sql[] = "SELECT CASE WHEN count(*) >= ?3 THEN min(watermark) ELSE 0 END"
                              " FROM rollup_state WHERE metric BETWEEN ?1 AND ?2";
    const int64_t first = METRICS_PER_KIND * (int64_t)kind;
    return database_ask(db, sql, (int64_t[]){first, first + METRICS_PER_KIND - 1, count}, out, err);
}

// The time from which on a kind's rows are still needed to make rollups again.  Those with
// implausible times may lie anywhere.
static enum status needed_from(sqlite3 *db, enum record_kind kind, int64_t *out, struct error *err)
{
    *out = INT64_MAX;
    enum status status =
        database_ask(db,
                     "SELECT min(since_ns) FROM rollup_gap WHERE kind = ?1 AND grouping < 2"
                     " AND why IN (?2, ?3)",
                     (int64_t[]){kind, ROLLUP_CLEARED, ROLLUP_EXPIRING}, out, err);
    if (*out <= SCHEMA_CLOCK_UNPLACED_NS)
        *out = INT64_MIN;
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}

// ---- Rows ---------------------------------------------------------------------------

// Counts the rows in their runs' ledgers and deletes them.  `rows`: "FROM KIND ...", which finds
// the same rows each time.
static enum status delete_rows(sqlite3 *db, enum record_kind kind, const char *rows,
                               struct error *err)
{
    return database_execf(db, err,
                          "UPDATE ledger SET expired = expired + gone.rows,"
                          " gone_sum = set_hash_add(gone_sum, gone.sum)"
                          " FROM (SELECT run, count(*) AS rows, set_hash(stream, number) AS sum"
                          " FROM (SELECT run, stream, number %s) GROUP BY run) AS gone"
                          " WHERE ledger.run = gone.run AND ledger.kind = %d;"
                          "DELETE FROM \"%w\" WHERE id IN (SELECT id %s)",
                          rows, (int)kind, record_kind_info(kind)->name, rows);
}

// Records that rows of the kind started before a time have expired; only ever moves forward.
static enum status set_expired_until(sqlite3 *db, enum record_kind kind, int64_t until_ns,
                                     struct error *err)
{
    return database_execf(db, err,
                          "INSERT INTO expiry VALUES(%d, %lld) ON CONFLICT(kind) DO UPDATE SET"
                          " until_ns = max(until_ns, excluded.until_ns)",
                          (int)kind, (long long)until_ns);
}

static enum status expire_in_transaction(sqlite3 *db, const struct expire_rows *rows,
                                         int64_t before_ns, unsigned *gone, struct error *err)
{
    const char *table = record_kind_info(rows->kind)->name;
    char oldest[256], last[448];
    int64_t last_ns = 0;
    (void)snprintf(oldest, sizeof oldest,
                   "FROM \"%s\" AS t INDEXED BY \"%s_started\" WHERE started_ns %s %lld"
                   " AND id <= %lld ORDER BY started_ns, id LIMIT %u",
                   table, table, rows->is_ahead ? ">" : "<",
                   (long long)(rows->is_ahead ? rows->before_ns : before_ns),
                   (long long)rows->last_id, rows->count);
    (void)snprintf(last, sizeof last,
                   "SELECT max(placed) FROM (SELECT " SCHEMA_PLACED_TIME " AS placed %s)", oldest);
    enum status status = database_ask(db, last, NULL, &last_ns, err);
    if (status != STATUS_OK)
        return status == STATUS_NO_DATA ? STATUS_OK : status;
    status = delete_rows(db, rows->kind, oldest, err);
    if (status != STATUS_OK)
        return status;
    *gone = (unsigned)sqlite3_changes(db);
    // The time to come has not expired, also where the collector's clock was ahead, too.
    if (rows->is_ahead)
        last_ns = SCHEMA_CLOCK_UNPLACED_NS;
    // Some rows of the last one's minute may be left, for the next batch.  Of the time behind it
    // nothing is said: with a clock that was years ahead for a day, queries would look for all
    // later records in rollups alone.
    const int64_t next_ns = rollup_next(ROLLUP_MINUTE, rollup_bucket(ROLLUP_MINUTE, last_ns));
    return set_expired_until(db, rows->kind, next_ns < before_ns ? next_ns : before_ns, err);
}

enum status expire_slice(sqlite3 *db, const struct expire_rows *rows, unsigned *gone,
                         struct error *err)
{
    assert(expire_has_kind(rows->kind) && rows->count > 0);
    int64_t needed_ns;
    *gone = 0;
    enum status status = needed_from(db, rows->kind, &needed_ns, err);
    if (status == STATUS_OK && rows->is_ahead && needed_ns <= SCHEMA_CLOCK_UNPLACED_NS)
        return STATUS_OK;
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    const int64_t before_ns = needed_ns < rows->before_ns ? needed_ns : rows->before_ns;
    status = database_end(db, expire_in_transaction(db, rows, before_ns, gone, err), err);
    if (status != STATUS_OK)
        *gone = 0;
    return status;
}

// The start of the kind's oldest row that may go.
static enum status oldest_of(sqlite3 *db, enum record_kind kind, bool any_id, int64_t *started_ns,
                             struct error *err)
{
    int64_t last_id = INT64_MAX, needed_ns = INT64_MAX;
    enum status status = any_id ? STATUS_OK : expire_last_id(db, kind, &last_id, err);
    if (status == STATUS_OK)
        status = needed_from(db, kind, &needed_ns, err);
    if (status != STATUS_OK)
        return status;
    const char *table = record_kind_info(kind)->name;
    char sql[224];
    (void)snprintf(sql, sizeof sql,
                   "SELECT started_ns FROM \"%s\" INDEXED BY \"%s_started\" WHERE id <= ?1 AND"
                   " started_ns < ?2 ORDER BY started_ns LIMIT 1",
                   table, table);
    return database_ask(db, sql, (int64_t[]){last_id, needed_ns}, started_ns, err);
}

enum status expire_oldest(sqlite3 *db, bool any_id, enum record_kind *kind, int64_t *started_ns,
                          struct error *err)
{
    bool found = false;
    for (unsigned i = 0; i < RECORD_KIND_COUNT; i++) {
        int64_t oldest_ns = 0;
        if (!expire_has_kind((enum record_kind)i))
            continue;
        enum status status = oldest_of(db, (enum record_kind)i, any_id, &oldest_ns, err);
        if (status != STATUS_OK && status != STATUS_NO_DATA)
            return status;
        if (status == STATUS_NO_DATA || (found && oldest_ns >= *started_ns))
            continue;
        *kind = (enum record_kind)i;
        *started_ns = oldest_ns;
        found = true;
    }
    return found ? STATUS_OK : STATUS_NO_DATA;
}

// ---- Sums of days -------------------------------------------------------------------------

// Prepares a day with records, the first one after `since_ns`, for their expiry: requests its sums
// if they are not kept, and removes the daily gaps of the days before, which have no records.  Once
// these days have expired, none of them is rebuilt, and a late record is in the daily rollups only
// where there is no gap.
static enum status prepare_day(sqlite3 *db, enum record_kind kind, int64_t since_ns, int64_t day_ns,
                               bool *changed, struct error *err)
{
    const int64_t next_ns = rollup_next(ROLLUP_DAY, day_ns);
    int64_t lacks = 0;
    enum status status =
        database_ask(db,
                     "SELECT count(*) FROM rollup_gap WHERE kind = ?1 AND since_ns < ?3"
                     " AND until_ns > ?2 AND why = 0 AND level IN (2, 3)",
                     (int64_t[]){kind, day_ns, next_ns}, &lacks, err);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++) {
        const enum rollup_grouping grouping = (enum rollup_grouping)g;
        const struct gap empty = {kind, grouping, ROLLUP_DAY, since_ns, day_ns, ROLLUP_SPARSE};
        const struct gap wanted = {kind, grouping, ROLLUP_MONTH, day_ns, next_ns, ROLLUP_EXPIRING};
        status = gap_remove(db, &empty, err);
        if (status == STATUS_OK && lacks)
            status = gap_add(db, &wanted, err);
    }
    *changed |= lacks > 0;
    return status;
}

_Static_assert(ROLLUP_SPARSE == 0 && ROLLUP_DAY == 2 && ROLLUP_MONTH == 3,
               "as prepare_day has them");

enum status expire_want_sums(sqlite3 *db, enum record_kind kind, int64_t *before_ns, bool *changed,
                             struct error *err)
{
    char sql[160];
    const char *table = record_kind_info(kind)->name;
    int64_t since_ns = 0, oldest_ns = 0;
    *changed = false;
    enum status status = gap_read_expired(db, kind, &since_ns, err);
    // The sums of a day that is begun stay; those of implausible times are always there.
    since_ns = since_ns > SCHEMA_CLOCK_FLOOR_NS
                   ? rollup_next(ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, since_ns - 1))
                   : SCHEMA_CLOCK_FLOOR_NS;
    (void)snprintf(sql, sizeof sql,
                   "SELECT min(started_ns) FROM \"%s\" WHERE started_ns >= ?1 AND started_ns < ?2",
                   table);
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    for (unsigned days = 0; days < DAYS_PER_LOOK && status == STATUS_OK; days++) {
        status = database_ask(db, sql, (int64_t[]){since_ns, *before_ns}, &oldest_ns, err);
        if (status != STATUS_OK)
            break;
        oldest_ns = rollup_bucket(ROLLUP_DAY, oldest_ns);
        status = prepare_day(db, kind, since_ns, oldest_ns, changed, err);
        since_ns = rollup_next(ROLLUP_DAY, oldest_ns);
    }
    if (status == STATUS_OK && since_ns < *before_ns)
        *before_ns = since_ns; // no later day was visited
    return database_end(db, status == STATUS_NO_DATA ? STATUS_OK : status, err);
}

enum status expire_awaits_sums(sqlite3 *db, bool *out, struct error *err)
{
    int64_t count = 0;
    enum status status = database_ask(db, "SELECT count(*) FROM rollup_gap WHERE why = ?1",
                                      (int64_t[]){ROLLUP_EXPIRING}, &count, err);
    *out = count > 0;
    return status;
}

// ---- Rollups ----------------------------------------------------------------------------

// Adds a gap up to where the level is given up, for each kind with rollups before: not beyond what
// there is, whatever the clock says.
static enum status add_gaps(sqlite3 *db, const struct expire_level *rollups, struct error *err)
{
    const enum rollup_level coarser =
        rollups->level == ROLLUP_MONTH ? ROLLUP_MONTH : (enum rollup_level)(rollups->level + 1);
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        const int64_t of[] = {kind, rollups->grouping, rollups->level, rollups->before_ns};
        int64_t newest_ns = 0;
        status =
            database_ask(db,
                         "SELECT max((SELECT max(started_ns) FROM rollup WHERE metric = s.metric"
                         " AND grouping = ?2 AND level = ?3 AND started_ns < ?4))"
                         " FROM rollup_state s WHERE s.metric / 256 = ?1",
                         of, &newest_ns, err);
        const int64_t end_ns = rollup_next(coarser, rollup_bucket(coarser, newest_ns));
        const struct gap gap = {.kind = (enum record_kind)kind,
                                .grouping = rollups->grouping,
                                .level = rollups->level,
                                .since_ns = INT64_MIN,
                                .until_ns =
                                    end_ns < rollups->before_ns ? end_ns : rollups->before_ns,
                                .why = ROLLUP_OLD};
        if (status == STATUS_OK)
            status = gap_add(db, &gap, err);
        else if (status == STATUS_NO_DATA)
            status = STATUS_OK;
    }
    return status;
}

enum status expire_level_slice(sqlite3 *db, const struct expire_level *rollups, unsigned *gone,
                               struct error *err)
{
    char where[64];
    *gone = 0;
    enum status status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(where, sizeof where, "grouping = %d AND level = %d", (int)rollups->grouping,
                   (int)rollups->level);
    status = add_gaps(db, rollups, err);
    if (status == STATUS_OK)
        status = gap_erase(db, where, &(struct gap_span){INT64_MIN, rollups->before_ns},
                           rollups->count, gone, err);
    status = database_end(db, status, err);
    if (status != STATUS_OK)
        *gone = 0;
    return status;
}

enum status expire_oldest_level(sqlite3 *db, enum rollup_level level, int64_t *started_ns,
                                struct error *err)
{
    return database_ask(db,
                        "SELECT min((SELECT min(started_ns) FROM rollup WHERE metric = s.metric"
                        " AND grouping = g.column1 AND level = ?1))"
                        " FROM rollup_state s, (VALUES(0), (1)) g",
                        (int64_t[]){level}, started_ns, err);
}

_Static_assert(ROLLUP_GROUPING_COUNT == 2, "as needed_from and expire_oldest_level have it");

// ---- Room -------------------------------------------------------------------------------

enum status expire_room(sqlite3 *db, struct expire_room *room, struct error *err)
{
    int64_t page = 0, pages = 0, unused = 0;
    enum status status = database_integer(db, "PRAGMA page_size", &page, err);
    if (status == STATUS_OK)
        status = database_integer(db, "PRAGMA page_count", &pages, err);
    if (status == STATUS_OK)
        status = database_integer(db, "PRAGMA freelist_count", &unused, err);
    *room = (struct expire_room){.bytes = page * pages, .free = page * unused};
    return status;
}

enum status expire_give_back(sqlite3 *db, unsigned pages, struct error *err)
{
    return database_execf(db, err, "PRAGMA incremental_vacuum(%u)", pages);
}
