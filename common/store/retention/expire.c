#include "common/store/retention/expire.h"

#include <assert.h>
#include <stdio.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/sqlite/set_hash.h"
#include "common/store/rollup/gap_table.h"

enum {
    ROWS_PER_LOOK = 256, // read, then deleted
    TALLY_PLACES = 256,  // runs counted before their ledgers are written
    METRICS_PER_KIND = 256,
    DAYS_PER_LOOK = 40,
};

// ---- Who may go ----------------------------------------------------------------------

bool expire_has_kind(enum record_kind kind)
{
    return kind != RECORD_KIND_RUN && kind != RECORD_KIND_DEVICE && kind != RECORD_KIND_MODEL;
}

// One integer of a statement with up to three integers as parameters.  STATUS_NO_DATA:
// no row, or null.
static enum status ask(sqlite3 *db, const char *sql, const int64_t parameters[3], int64_t *out,
                       struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt, sql, false, err);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < 3 && i < sqlite3_bind_parameter_count(stmt); i++)
        (void)sqlite3_bind_int64(stmt, i + 1, parameters[i]);
    const int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL)
        *out = sqlite3_column_int64(stmt, 0);
    else if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        status = STATUS_NO_DATA;
    else
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
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
    return ask(db, sql, (int64_t[]){first, first + METRICS_PER_KIND - 1, count}, out, err);
}

// The time from which on a kind's rows are still needed to make rollups again.
static enum status needed_from(sqlite3 *db, enum record_kind kind, int64_t *out, struct error *err)
{
    *out = INT64_MAX;
    enum status status = ask(db,
                             "SELECT min(since_ns) FROM rollup_gap WHERE kind = ?1 AND grouping < 2"
                             " AND why IN (?2, ?3)",
                             (int64_t[]){(int64_t)kind, ROLLUP_CLEARED, ROLLUP_EXPIRING}, out, err);
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}

_Static_assert(ROLLUP_GROUPING_COUNT == 2, "as needed_from has it");

// ---- What slices share -------------------------------------------------------------------

// Records that rows of the kind started before a time have expired; only ever moves forward.
static enum status set_expired_until(sqlite3 *db, enum record_kind kind, int64_t until_ns,
                                     struct error *err)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO expiry VALUES(%u, %lld) ON CONFLICT(kind) DO UPDATE SET until_ns ="
                   " max(until_ns, excluded.until_ns)",
                   (unsigned)kind, (long long)until_ns);
    return database_exec(db, sql, err);
}

// ---- Counting what goes ----------------------------------------------------------------

// What goes of one run.
struct gone {
    int64_t run; // 0: a free place; runs count from 1
    int64_t count;
    uint64_t sum;
};

// The current slice.
struct slice {
    sqlite3 *db;
    const struct expire_rows *rows;
    sqlite3_stmt *oldest, *delete_row, *ledger;
    struct gone tally[TALLY_PLACES];
    unsigned used;
    int64_t ids[ROWS_PER_LOOK];
    int64_t last_ns; // of the last row that went
};

static enum status write_ledgers(struct slice *slice, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < TALLY_PLACES && status == STATUS_OK; i++) {
        struct gone *gone = &slice->tally[i];
        if (gone->run == 0)
            continue;
        (void)sqlite3_bind_int64(slice->ledger, 1, gone->run);
        (void)sqlite3_bind_int64(slice->ledger, 2, (int64_t)slice->rows->kind);
        (void)sqlite3_bind_int64(slice->ledger, 3, gone->count);
        (void)sqlite3_bind_int64(slice->ledger, 4, set_hash_signed(gone->sum));
        status = database_run(slice->db, slice->ledger, err);
        *gone = (struct gone){0};
    }
    slice->used = 0;
    return status;
}

// The place of a run, or a free one; there always is one.
static struct gone *find_place(struct slice *slice, int64_t run)
{
    uint64_t place = (uint64_t)set_hash_of(0, run) % TALLY_PLACES;
    while (slice->tally[place].run != 0 && slice->tally[place].run != run)
        place = (place + 1) % TALLY_PLACES;
    return &slice->tally[place];
}

static enum status count_row(struct slice *slice, sqlite3_stmt *row, struct error *err)
{
    enum status status = STATUS_OK;
    if (slice->used == TALLY_PLACES / 2)
        status = write_ledgers(slice, err);
    const int64_t run = sqlite3_column_int64(row, 1);
    struct gone *gone = find_place(slice, run);
    slice->used += gone->run == 0;
    gone->run = run;
    gone->count++;
    gone->sum += set_hash_of(sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3));
    slice->last_ns = sqlite3_column_int64(row, 4);
    return status;
}

// ---- Rows -------------------------------------------------------------------------------

static enum status prepare(struct slice *slice, struct error *err)
{
    const char *table = record_kind_info(slice->rows->kind)->name;
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "SELECT id, run, stream, number, started_ns FROM \"%s\" INDEXED BY"
                   " \"%s_started\" WHERE started_ns < ?1 AND id <= ?2 ORDER BY started_ns LIMIT"
                   " ?3",
                   table, table);
    enum status status = database_prepare(slice->db, &slice->oldest, sql, false, err);
    (void)snprintf(sql, sizeof sql, "DELETE FROM \"%s\" WHERE id = ?1", table);
    if (status == STATUS_OK)
        status = database_prepare(slice->db, &slice->delete_row, sql, false, err);
    if (status == STATUS_OK)
        status = database_prepare(slice->db, &slice->ledger,
                                  "UPDATE ledger SET expired = expired + ?3, gone_sum ="
                                  " set_hash_add(gone_sum, ?4) WHERE run = ?1 AND kind = ?2",
                                  false, err);
    return status;
}

static void finish(struct slice *slice)
{
    (void)sqlite3_finalize(slice->oldest);
    (void)sqlite3_finalize(slice->delete_row);
    (void)sqlite3_finalize(slice->ledger);
}

// Reads the next rows, counts them, and deletes them.
static enum status delete_some(struct slice *slice, unsigned wanted, int64_t before_ns,
                               unsigned *gone, struct error *err)
{
    unsigned count = 0;
    enum status status = STATUS_OK;
    (void)sqlite3_bind_int64(slice->oldest, 1, before_ns);
    (void)sqlite3_bind_int64(slice->oldest, 2, slice->rows->last_id);
    (void)sqlite3_bind_int64(slice->oldest, 3, wanted);
    int rc = sqlite3_step(slice->oldest);
    while (rc == SQLITE_ROW && status == STATUS_OK && count < ROWS_PER_LOOK) {
        slice->ids[count++] = sqlite3_column_int64(slice->oldest, 0);
        status = count_row(slice, slice->oldest, err);
        rc = sqlite3_step(slice->oldest);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(slice->db, "store", err);
    (void)sqlite3_reset(slice->oldest);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        (void)sqlite3_bind_int64(slice->delete_row, 1, slice->ids[i]);
        status = database_run(slice->db, slice->delete_row, err);
    }
    *gone = count;
    return status;
}

static enum status delete_rows(struct slice *slice, int64_t before_ns, unsigned *gone,
                               struct error *err)
{
    const unsigned wanted = slice->rows->count;
    unsigned some = 0, asked = 0;
    enum status status = prepare(slice, err);
    *gone = 0;
    while (status == STATUS_OK && *gone < wanted && some == asked) {
        asked = wanted - *gone < ROWS_PER_LOOK ? wanted - *gone : ROWS_PER_LOOK;
        status = delete_some(slice, asked, before_ns, &some, err);
        *gone += some;
    }
    if (status == STATUS_OK)
        status = write_ledgers(slice, err);
    // Of the last row's minute some may be left, which the next slice takes.
    const int64_t next = rollup_next(ROLLUP_MINUTE, rollup_bucket(ROLLUP_MINUTE, slice->last_ns));
    // Nor does it say more of the time behind it: a clock that is years ahead today would
    // have all that is stored tomorrow looked for in rollups alone.
    if (status == STATUS_OK && *gone > 0)
        status = set_expired_until(slice->db, slice->rows->kind,
                                   next < before_ns ? next : before_ns, err);
    finish(slice);
    return status;
}

// ---- Sums of days -------------------------------------------------------------------------

// Where sums of days are not kept of a day that is about to expire, requests them.
static enum status want_sums(sqlite3 *db, enum record_kind kind, int64_t day_ns, struct error *err)
{
    const int64_t next_ns = rollup_next(ROLLUP_DAY, day_ns);
    int64_t lacks = 0;
    enum status status = ask(db,
                             "SELECT 1 FROM rollup_gap WHERE kind = ?1 AND since_ns < ?3"
                             " AND until_ns > ?2 AND why = 0 AND level IN (2, 3) LIMIT 1",
                             (int64_t[]){(int64_t)kind, day_ns, next_ns}, &lacks, err);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && lacks && status == STATUS_OK; g++)
        status = gap_add(db,
                         &(struct gap){.kind = kind,
                                       .grouping = (enum rollup_grouping)g,
                                       .level = ROLLUP_MONTH,
                                       .since_ns = day_ns,
                                       .until_ns = next_ns,
                                       .why = ROLLUP_EXPIRING},
                         err);
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}

_Static_assert(ROLLUP_SPARSE == 0 && ROLLUP_DAY == 2 && ROLLUP_MONTH == 3, "as want_sums has them");

// Removes the daily gaps of days that have no records and are about to expire: once they have, no
// day is rebuilt, and a late record is in the daily rollups only where there is no gap.
static enum status remove_gaps(sqlite3 *db, enum record_kind kind, const struct gap_span *days,
                               struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_remove(db,
                            &(struct gap){.kind = kind,
                                          .grouping = (enum rollup_grouping)g,
                                          .level = ROLLUP_DAY,
                                          .since_ns = days->since_ns,
                                          .until_ns = days->until_ns,
                                          .why = ROLLUP_SPARSE},
                            err);
    return status;
}

enum status expire_want_sums(sqlite3 *db, enum record_kind kind, int64_t *before_ns, bool *changed,
                             struct error *err)
{
    char sql[160];
    const char *table = record_kind_info(kind)->name;
    int64_t since_ns = INT64_MIN, oldest_ns = 0;
    *changed = false;
    enum status status = ask(db, "SELECT until_ns FROM expiry WHERE kind = ?1",
                             (int64_t[]){(int64_t)kind, 0, 0}, &since_ns, err);
    if (status == STATUS_NO_DATA)
        status = STATUS_OK;
    if (status == STATUS_OK && since_ns > INT64_MIN) // the sums of a day that is begun stay
        since_ns = rollup_next(ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, since_ns - 1));
    (void)snprintf(sql, sizeof sql,
                   "SELECT min(started_ns) FROM \"%s\" WHERE started_ns >= ?1 AND started_ns < ?2",
                   table);
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    for (unsigned days = 0; days < DAYS_PER_LOOK && status == STATUS_OK; days++) {
        status = ask(db, sql, (int64_t[]){since_ns, *before_ns, 0}, &oldest_ns, err);
        if (status != STATUS_OK)
            break;
        oldest_ns = rollup_bucket(ROLLUP_DAY, oldest_ns);
        status = remove_gaps(db, kind, &(struct gap_span){since_ns, oldest_ns}, err);
        const int before = sqlite3_total_changes(db);
        if (status == STATUS_OK)
            status = want_sums(db, kind, oldest_ns, err);
        *changed |= sqlite3_total_changes(db) != before;
        since_ns = rollup_next(ROLLUP_DAY, oldest_ns);
    }
    if (status == STATUS_OK && since_ns < *before_ns)
        *before_ns = since_ns; // no later day was visited
    return database_end(db, status == STATUS_NO_DATA ? STATUS_OK : status, err);
}

// ---- Slices -----------------------------------------------------------------------------

static enum status expire_from_table(sqlite3 *db, const struct expire_rows *rows, int64_t before_ns,
                                     unsigned *gone, struct error *err)
{
    struct slice slice = {.db = db, .rows = rows};
    enum status status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = database_end(db, delete_rows(&slice, before_ns, gone, err), err);
    if (status != STATUS_OK)
        *gone = 0;
    return status;
}

enum status expire_slice(sqlite3 *db, const struct expire_rows *rows, unsigned *gone,
                         struct error *err)
{
    assert(expire_has_kind(rows->kind) && rows->count > 0);
    int64_t needed_ns;
    *gone = 0;
    enum status status = needed_from(db, rows->kind, &needed_ns, err);
    if (status != STATUS_OK)
        return status;
    const int64_t before_ns = needed_ns < rows->before_ns ? needed_ns : rows->before_ns;
    return expire_from_table(db, rows, before_ns, gone, err);
}

// The kind's oldest row that may go, and the end of its hour.
static enum status oldest_of(sqlite3 *db, enum record_kind kind, bool any_id, int64_t *started_ns,
                             int64_t *end_ns, struct error *err)
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
    status = ask(db, sql, (int64_t[]){last_id, needed_ns, 0}, started_ns, err);
    if (status != STATUS_OK)
        return status;
    *end_ns = rollup_next(ROLLUP_HOUR, rollup_bucket(ROLLUP_HOUR, *started_ns));
    return STATUS_OK;
}

enum status expire_oldest(sqlite3 *db, bool any_id, enum record_kind *kind, int64_t *started_ns,
                          int64_t *end_ns, struct error *err)
{
    bool found = false;
    for (unsigned i = 0; i < RECORD_KIND_COUNT; i++) {
        int64_t oldest = 0, oldest_end = 0;
        if (!expire_has_kind((enum record_kind)i))
            continue;
        enum status status = oldest_of(db, (enum record_kind)i, any_id, &oldest, &oldest_end, err);
        if (status == STATUS_NO_DATA)
            continue;
        if (status != STATUS_OK)
            return status;
        if (found && oldest >= *started_ns)
            continue;
        *kind = (enum record_kind)i;
        *started_ns = oldest;
        *end_ns = oldest_end;
        found = true;
    }
    return found ? STATUS_OK : STATUS_NO_DATA;
}

// ---- Rollups ----------------------------------------------------------------------------

// The time of the last row that goes, and whether there is one.
static enum status last_of_level(sqlite3 *db, const struct expire_level *rollups, int64_t *out,
                                 struct error *err)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT max(started_ns) FROM (SELECT started_ns FROM rollup WHERE metric = %d"
                   " AND grouping = %d AND level = %d AND started_ns < ?1 ORDER BY started_ns"
                   " LIMIT ?2)",
                   rollup_metric_number(rollups->metric), (int)rollups->grouping,
                   (int)rollups->level);
    return ask(db, sql, (int64_t[]){rollups->before_ns, rollups->count, 0}, out, err);
}

// Up to where the level is given up: not beyond what there is, whatever the clock says.
static enum status gap_end(sqlite3 *db, const struct expire_level *rollups, int64_t *out,
                           struct error *err)
{
    const enum rollup_level coarser =
        rollups->level == ROLLUP_MONTH ? ROLLUP_MONTH : (enum rollup_level)(rollups->level + 1);
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "SELECT max(started_ns) FROM rollup WHERE metric = %d AND grouping = %d"
                   " AND level = %d AND started_ns < ?1",
                   rollup_metric_number(rollups->metric), (int)rollups->grouping,
                   (int)rollups->level);
    int64_t newest_ns = 0;
    enum status status = ask(db, sql, (int64_t[]){rollups->before_ns, 0, 0}, &newest_ns, err);
    const int64_t end_ns = rollup_next(coarser, rollup_bucket(coarser, newest_ns));
    *out = end_ns < rollups->before_ns ? end_ns : rollups->before_ns;
    return status;
}

static enum status set_gap(sqlite3 *db, const struct expire_level *rollups, struct error *err)
{
    int64_t until_ns = 0;
    enum status status = gap_end(db, rollups, &until_ns, err);
    if (status != STATUS_OK)
        return status;
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why) "
                   "VALUES(%d, %d, %d, %s, %lld, %d) ON CONFLICT DO UPDATE"
                   " SET until_ns = max(until_ns, excluded.until_ns)",
                   (int)rollups->metric->kind, (int)rollups->grouping, (int)rollups->level,
                   "-9223372036854775807 - 1", (long long)until_ns, ROLLUP_OLD);
    return database_exec(db, sql, err);
}

static enum status delete_level(sqlite3 *db, const struct expire_level *rollups, int64_t last_ns,
                                unsigned *gone, struct error *err)
{
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM rollup WHERE metric = %d AND grouping = %d AND level = %d"
                   " AND started_ns <= %lld",
                   rollup_metric_number(rollups->metric), (int)rollups->grouping,
                   (int)rollups->level, (long long)last_ns);
    enum status status = set_gap(db, rollups, err);
    if (status == STATUS_OK)
        status = database_exec(db, sql, err);
    if (status == STATUS_OK)
        *gone = (unsigned)sqlite3_changes(db);
    return status;
}

enum status expire_level_slice(sqlite3 *db, const struct expire_level *rollups, unsigned *gone,
                               struct error *err)
{
    int64_t last_ns = 0;
    *gone = 0;
    enum status status = last_of_level(db, rollups, &last_ns, err);
    if (status != STATUS_OK)
        return status == STATUS_NO_DATA ? STATUS_OK : status;
    status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    status = database_end(db, delete_level(db, rollups, last_ns, gone, err), err);
    if (status != STATUS_OK)
        *gone = 0;
    return status;
}

static enum status oldest_bucket(sqlite3 *db, const struct expire_level *rollups, int64_t *out,
                                 struct error *err)
{
    return ask(db,
               "SELECT min(started_ns) FROM rollup WHERE metric = ?1 AND grouping = ?2"
               " AND level = ?3",
               (int64_t[]){rollup_metric_number(rollups->metric), (int64_t)rollups->grouping,
                           (int64_t)rollups->level},
               out, err);
}

// Makes `*out` the older of itself and the oldest of a kind's.
static enum status look_at_kind(sqlite3 *db, enum record_kind kind, enum rollup_level level,
                                struct expire_level *out, struct error *err)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_has_kind(kind) ? rollup_metrics(kind, metrics) : 0;
    for (unsigned i = 0; i < count * ROLLUP_GROUPING_COUNT; i++) {
        struct expire_level rollups = {
            .metric = metrics[i / ROLLUP_GROUPING_COUNT],
            .grouping = (enum rollup_grouping)(i % ROLLUP_GROUPING_COUNT),
            .level = level,
        };
        enum status status = oldest_bucket(db, &rollups, &rollups.before_ns, err);
        if (status != STATUS_OK && status != STATUS_NO_DATA)
            return status;
        if (status == STATUS_OK && (!out->metric || rollups.before_ns < out->before_ns))
            *out = rollups;
    }
    return STATUS_OK;
}

enum status expire_oldest_level(sqlite3 *db, enum rollup_level level, struct expire_level *out,
                                struct error *err)
{
    *out = (struct expire_level){.level = level};
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++)
        status = look_at_kind(db, (enum record_kind)kind, level, out, err);
    return status == STATUS_OK && !out->metric ? STATUS_NO_DATA : status;
}

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
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%u)", pages);
    return database_exec(db, sql, err);
}
