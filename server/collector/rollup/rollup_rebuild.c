#include "server/collector/rollup/rollup_rebuild.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/schema/schema.h"
#include "common/store/sqlite/database.h"

// Records read in one step, and groups written: some milliseconds.
enum { READ_ROWS = 2048, SLICE_GROUPS = 128, SLICE_BYTES = 1048576 };

enum { SEARCH_IDS = 16384 }; // ids searched in one step for records with implausible times

enum { DAY_LEVELS = 1 << ROLLUP_MINUTE | 1 << ROLLUP_HOUR | 1 << ROLLUP_DAY };

static void end(struct rollup_rebuild *rebuild)
{
    rollup_memtable_deinit(&rebuild->memtable);
    (void)sqlite3_finalize(rebuild->read);
    rebuild->read = NULL;
    rebuild->kind = RECORD_KIND_COUNT;
    rebuild->day = (struct gap_span){0};
}

void rollup_rebuild_stop(struct rollup_rebuild *rebuild)
{
    end(rebuild);
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        rebuild->before_ns[k] = INT64_MAX;
}

bool rollup_rebuild_pass_over(struct rollup_rebuild *rebuild)
{
    if (rebuild->kind == RECORD_KIND_COUNT)
        return false;
    rebuild->before_ns[rebuild->kind] = rebuild->day.since_ns;
    end(rebuild);
    return true;
}

struct gap_span rollup_rebuild_span(const struct rollup_rebuild *rebuild)
{
    if (rebuild->phase == REBUILD_ERASE)
        return (struct gap_span){0};
    return rebuild->day;
}

// ---- Gaps ------------------------------------------------------------------------------

static struct gap_span day_of(int64_t time_ns)
{
    const int64_t start = rollup_bucket(ROLLUP_DAY, time_ns);
    return (struct gap_span){start, rollup_next(ROLLUP_DAY, start)};
}

static struct gap gap_of(enum record_kind kind, enum rollup_level level, enum rollup_why why,
                         const struct gap_span *span)
{
    return (struct gap){.kind = kind,
                        .level = level,
                        .since_ns = span->since_ns,
                        .until_ns = span->until_ns,
                        .why = why};
}

// ---- The next day ----------------------------------------------------------------------

// The last time before one at which the kind has a record that rollups hold, or a rollup;
// INT64_MIN: there is none.  The day of implausible times always counts as having one: to find out,
// all records would have to be read.
static enum status find_last(struct rollup_rebuild *rebuild, enum record_kind kind,
                             int64_t watermark, int64_t before_ns, int64_t *last, struct error *err)
{
    char *sql = sqlite3_mprintf(
        "SELECT max(coalesce((SELECT t.started_ns FROM \"%w\" t WHERE t.started_ns <= ?1"
        " AND t.id <= ?2 AND t.started_ns >= " SCHEMA_CLOCK_FLOOR_TEXT " AND " SCHEMA_IS_PLACED
        " ORDER BY t.started_ns DESC LIMIT 1), ?3), coalesce((SELECT max((SELECT max(started_ns)"
        " FROM rollup WHERE metric = s.metric AND grouping = g.column1 AND level = l.column1"
        " AND started_ns <= ?1)) FROM rollup_state s, (VALUES(0), (1)) g,"
        " (VALUES(0), (1), (2)) l WHERE s.metric / 256 = %d), ?3))",
        record_kind_info(kind)->name, (int)kind);
    before_ns -= before_ns < INT64_MAX; // the last time has no end
    enum status status = sql ? database_ask(rebuild->db, sql,
                                            (int64_t[]){before_ns, watermark, INT64_MIN}, last, err)
                             : error_no_memory(err, "rollups");
    sqlite3_free(sql);
    if (*last < SCHEMA_CLOCK_UNPLACED_NS && before_ns >= SCHEMA_CLOCK_UNPLACED_NS)
        *last = SCHEMA_CLOCK_UNPLACED_NS;
    return status;
}

_Static_assert(ROLLUP_GROUPING_COUNT == 2 && ROLLUP_MONTH == 3, "as find_last has them");

// The last gap of the kind's that is to be rebuilt.  STATUS_NO_DATA: there is none.
static enum status find_gap(struct rollup_rebuild *rebuild, enum record_kind kind,
                            struct gap_span *span, struct error *err)
{
#define OF_LAST                                                                                    \
    " FROM rollup_gap WHERE kind = ?1 AND grouping < 2 AND since_ns < ?2 AND why IN (2, 3)"        \
    " ORDER BY until_ns DESC, since_ns LIMIT 1"
    const int64_t of[] = {(int64_t)kind, rebuild->before_ns[kind]};
    enum status status =
        database_ask(rebuild->db, "SELECT since_ns" OF_LAST, of, &span->since_ns, err);
    return status == STATUS_OK
               ? database_ask(rebuild->db, "SELECT until_ns" OF_LAST, of, &span->until_ns, err)
               : status;
#undef OF_LAST
}

_Static_assert(ROLLUP_GROUPING_COUNT == 2 && ROLLUP_CLEARED == 2 && ROLLUP_EXPIRING == 3,
               "as find_gap has them");

// Takes a span out of what is to be rebuilt.
static enum status forget_span(struct rollup_rebuild *rebuild, enum record_kind kind,
                               const struct gap_span *span, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned why = ROLLUP_CLEARED; why <= ROLLUP_EXPIRING && status == STATUS_OK; why++)
        status = gap_each_grouping(rebuild->db, gap_remove,
                                   gap_of(kind, ROLLUP_MONTH, (enum rollup_why)why, span), err);
    return status;
}

static enum status begin_day(struct rollup_rebuild *rebuild, enum record_kind kind,
                             const struct gap_span *day, struct error *err)
{
    int64_t keeps = 0;
    int64_t of[] = {(int64_t)kind, day->since_ns, day->until_ns};
    enum status status = database_ask(rebuild->db,
                                      "SELECT 1 FROM rollup_gap WHERE kind = ?1 AND since_ns < ?3"
                                      " AND until_ns > ?2 AND why = 3",
                                      of, &keeps, err);
    // The whole day, so that its remaining rows are not read.
    if (status == STATUS_OK || status == STATUS_NO_DATA)
        status = gap_each_grouping(
            rebuild->db, gap_add,
            gap_of(kind, ROLLUP_MONTH, keeps ? ROLLUP_EXPIRING : ROLLUP_CLEARED, day), err);
    if (status == STATUS_OK)
        status = gap_drop_months(rebuild->db, kind, day, err);
    rebuild->kind = kind;
    rebuild->phase = REBUILD_ERASE;
    rebuild->day = *day;
    rebuild->keeps_days = keeps != 0;
    return status;
}

enum status rollup_rebuild_begin(struct rollup_rebuild *rebuild, enum record_kind kind,
                                 int64_t watermark, bool *found, struct error *err)
{
    int64_t expired_ns = INT64_MIN;
    *found = false;
    enum status status = gap_read_expired(rebuild->db, kind, &expired_ns, err);
    while (status == STATUS_OK) {
        struct gap_span gap = {0};
        int64_t last_ns = INT64_MIN;
        status = find_gap(rebuild, kind, &gap, err);
        if (status != STATUS_OK)
            return status == STATUS_NO_DATA ? STATUS_OK : status;
        if (gap.until_ns > rebuild->before_ns[kind])
            gap.until_ns = rebuild->before_ns[kind];
        status = find_last(rebuild, kind, watermark, gap.until_ns, &last_ns, err);
        if (status != STATUS_OK)
            break;
        const struct gap_span day = day_of(last_ns > gap.since_ns ? last_ns : gap.since_ns);
        const bool has_some = last_ns >= rollup_bucket(ROLLUP_DAY, gap.since_ns);
        if (!has_some || day.since_ns < expired_ns) {
            status = forget_span(rebuild, kind, &gap, err);
            continue;
        }
        const struct gap_span behind = {day.until_ns, gap.until_ns};
        status = forget_span(rebuild, kind, &behind, err);
        *found = status == STATUS_OK;
        return *found ? begin_day(rebuild, kind, &day, err) : status;
    }
    return status;
}

// ---- Records -----------------------------------------------------------------------------

// Records with implausible times are on one day in rollups; no index finds them.
static bool is_unplaced(const struct rollup_rebuild *rebuild)
{
    return rebuild->day.since_ns == SCHEMA_CLOCK_UNPLACED_NS;
}

static enum status prepare_read(struct rollup_rebuild *rebuild, struct error *err)
{
    const char *tail = "WHERE (t.started_ns, t.id) > (?1, ?2) AND t.started_ns <= ?3 AND t.id <= ?4"
                       " AND " SCHEMA_IS_PLACED " ORDER BY t.started_ns, t.id LIMIT ?5";
    if (is_unplaced(rebuild))
        tail = "WHERE t.id > ?2 AND t.id <= ?4 AND NOT (" SCHEMA_IS_PLACED ")"
               " ORDER BY t.id LIMIT ?5";
    return rollup_memtable_prepare(rebuild->db, rebuild->kind, tail, &rebuild->read, err);
}

static enum status read_some(struct rollup_rebuild *rebuild, struct error *err)
{
    struct rollup_memtable *memtable = &rebuild->memtable;
    const size_t before = memtable->count;
    const int64_t last_ns = rebuild->day.until_ns - (rebuild->day.until_ns < INT64_MAX);
    const bool is_part = is_unplaced(rebuild) && rebuild->watermark - rebuild->read_id > SEARCH_IDS;
    const int64_t last_id = is_part ? rebuild->read_id + SEARCH_IDS : rebuild->watermark;
    database_bind(rebuild->read,
                  (int64_t[]){rebuild->read_ns, rebuild->read_id, last_ns, last_id, READ_ROWS}, 5);
    const enum status status = rollup_memtable_read(memtable, rebuild->db, rebuild->read, err);
    if (memtable->count > before) {
        rebuild->read_ns = memtable->started_ns[memtable->count - 1];
        rebuild->read_id = memtable->ids[memtable->count - 1];
    }
    const bool has_all = status == STATUS_OK && memtable->count - before < READ_ROWS;
    if (has_all && is_part)
        rebuild->read_id = last_id;
    rebuild->is_at_end = has_all && !is_part;
    if (status == STATUS_FULL || rebuild->is_at_end)
        rebuild->phase = REBUILD_WRITE;
    return status == STATUS_FULL ? STATUS_OK : status;
}

// ---- Writing -------------------------------------------------------------------------------

static enum status write_some(struct rollup_rebuild *rebuild, int64_t wall_ns, struct error *err)
{
    const struct rollup_job job = {
        .slice = {.memtable = &rebuild->memtable,
                  .first_row = rebuild->first_row,
                  .groups_most = SLICE_GROUPS,
                  .bytes_most = SLICE_BYTES},
        .metrics = ROLLUP_METRICS_ALL,
        .levels = DAY_LEVELS,
        .rebuilt = {INT64_MIN, INT64_MAX},
        .is_whole_day = rebuild->is_first && rebuild->is_at_end,
        .keeps_days = rebuild->keeps_days,
        .wall_ns = wall_ns,
    };
    struct rollup_row_key damaged;
    struct rollup_written written = {.end_row = rebuild->first_row};
    enum status status = STATUS_OK;
    if (rebuild->first_row < rebuild->memtable.count)
        status =
            rollup_levels_write(rebuild->levels, rebuild->flush, &job, &written, &damaged, err);
    rebuild->first_row = written.end_row;
    if (status != STATUS_OK || rebuild->first_row < rebuild->memtable.count)
        return status;
    rollup_memtable_clear(&rebuild->memtable, true);
    rebuild->first_row = 0;
    rebuild->is_first = false;
    rebuild->phase = REBUILD_READ;
    if (!rebuild->is_at_end)
        return STATUS_OK;
    status = forget_span(rebuild, rebuild->kind, &rebuild->day, err);
    if (status == STATUS_OK)
        end(rebuild);
    return status;
}

// ---- Steps -----------------------------------------------------------------------------

// Deletes some rows of the day and its month; with the last of them the watermark says which
// records are to be read.
static enum status erase_some(struct rollup_rebuild *rebuild, int64_t watermark, struct error *err)
{
    bool left = false;
    enum status status =
        rollup_levels_erase(rebuild->db, rebuild->kind, ROLLUP_DAY, &rebuild->day, &left, err);
    if (status == STATUS_OK && !left)
        status = rollup_levels_erase(rebuild->db, rebuild->kind, ROLLUP_MONTH, &rebuild->day, &left,
                                     err);
    for (unsigned level = 0; level < ROLLUP_MONTH && status == STATUS_OK && !left; level++)
        status = gap_each_grouping(
            rebuild->db, gap_remove,
            gap_of(rebuild->kind, (enum rollup_level)level, ROLLUP_SPARSE, &rebuild->day), err);
    if (status != STATUS_OK || left)
        return status;
    rebuild->phase = REBUILD_READ;
    rebuild->watermark = watermark;
    rebuild->read_ns = rebuild->day.since_ns;
    rebuild->read_id = 0;
    rebuild->first_row = 0;
    rebuild->is_first = true;
    rollup_memtable_init(&rebuild->memtable, rebuild->kind);
    return prepare_read(rebuild, err);
}

enum status rollup_rebuild_step(struct rollup_rebuild *rebuild, int64_t watermark, int64_t wall_ns,
                                struct error *err)
{
    switch (rebuild->phase) {
    case REBUILD_ERASE:
        return erase_some(rebuild, watermark, err);
    case REBUILD_READ:
        return read_some(rebuild, err);
    case REBUILD_WRITE:
        break;
    }
    return write_some(rebuild, wall_ns, err);
}

// ---- Damage ------------------------------------------------------------------------------

enum status rollup_rebuild_damaged(sqlite3 *db, enum record_kind kind,
                                   const struct rollup_row_key *damaged, struct error *err)
{
    int64_t expired_ns = INT64_MIN;
    const struct gap_span day = day_of(damaged->started_ns);
    bool left = true;
    enum status status = gap_read_expired(db, kind, &expired_ns, err);
    if (status == STATUS_OK && damaged->level == ROLLUP_MONTH)
        status = gap_drop_months(db, kind, &day, err);
    else if (status == STATUS_OK && day.since_ns >= expired_ns)
        return gap_request_rebuild(db, kind, &day, 1, err);
    else if (status == STATUS_OK)
        status = gap_each_grouping(db, gap_add, gap_of(kind, ROLLUP_MONTH, ROLLUP_LOST, &day), err);
    while (status == STATUS_OK && left && damaged->level != ROLLUP_MONTH)
        status = rollup_levels_erase(db, kind, ROLLUP_DAY, &day, &left, err);
    return status;
}
