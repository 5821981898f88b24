#include "server/collector/rollup/rollups.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/rollup/gap_table.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/collector/rollup/rollup_flush.h"
#include "server/collector/rollup/rollup_levels.h"
#include "server/collector/rollup/rollup_throttle.h"
#include "server/collector/rollup/rollup_rebuild.h"
#include "server/collector/rollup/rollup_pass.h"
#include "server/collector/threads/queue.h"

enum {
    READ_ROWS = 2048,    // records read at once
    TAIL_ROWS = 2000,    // queries read as many without anyone noticing
    LOADED_ROWS = 65536, // under load: the more records, the fewer rows a record
    SLICE_GROUPS = 128,  // written in one transaction while others wait
    PASS_GROUPS = 256,   // the same of one metric
    QUIET_GROUPS = 4096, // and while none do
    SLICE_BYTES = 1048576,
    ROWS_A_SERIES = 24, // of many series: the more, the fewer sums a record
    PRUNE_REST_TIMES = 4,
};

#define STEP_NS         UINT64_C(10000000)    // of work for which others wait
#define STEP_ALL_NS     UINT64_C(100000000)   // when the collector ends
#define AGE_NS          UINT64_C(60000000000) // the longest that records stay in memory alone
#define RETRY_NS        UINT64_C(10000000000) // after a failure
#define REBUILD_REST_NS UINT64_C(60000000000) // the same of a rebuild

struct rollups {
    sqlite3 *db;
    sqlite3_stmt *save, *find_host;
    struct rollup_flush *flush;
    struct rollup_pass pass;
    struct rollup_levels levels;
    struct rollup_rebuild rebuild;
    struct rollup_kind kinds[RECORD_KIND_COUNT];
    struct rollup_throttle throttle;
    struct queue *inbox; // NULL: none
    int64_t wall_ns;     // as told last
    bool is_stale;       // what is in memory says nothing
    bool is_rebuilt;     // no day is left to be rebuilt, as far as is known
    uint64_t retry_ns;   // no work before, after a failure
    uint64_t rebuild_rest_ns, prune_rest_ns;
    bool has_complained, rebuild_has_complained;
};

// ---- Opening -----------------------------------------------------------------------------

static enum status load(struct rollups *rollups, struct error *err)
{
    enum status status = STATUS_OK;
    rollup_pass_end(&rollups->pass);
    for (unsigned k = 0; k < RECORD_KIND_COUNT && status == STATUS_OK; k++) {
        rollup_kind_clear(&rollups->kinds[k]);
        if (rollups->kinds[k].metrics->count > 0)
            status = rollup_kind_load(&rollups->kinds[k], rollups->save, err);
    }
    rollups->is_stale = status != STATUS_OK;
    return status;
}

enum status rollups_new(struct rollups **out, sqlite3 *db, struct error *err)
{
    struct rollups *rollups = calloc(1, sizeof *rollups);
    if (!rollups)
        return error_no_memory(err, "rollups");
    rollups->db = db;
    rollups->levels.db = db;
    rollup_levels_restart(&rollups->levels);
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        rollups->kinds[k].metrics = rollup_metrics_of((enum record_kind)k);
        rollup_memtable_init(&rollups->kinds[k].memtable, (enum record_kind)k);
    }
    rollups->pass = (struct rollup_pass){.levels = &rollups->levels,
                                         .above = SLICE_GROUPS,
                                         .groups_most = PASS_GROUPS,
                                         .kind = RECORD_KIND_COUNT};
    enum status status = rollup_flush_new(&rollups->flush, db, err);
    if (status == STATUS_OK)
        status = rollup_flush_new(&rollups->pass.flush, db, err);
    rollups->rebuild =
        (struct rollup_rebuild){.db = db, .flush = rollups->flush, .levels = &rollups->levels};
    rollup_rebuild_stop(&rollups->rebuild);
    if (status == STATUS_OK)
        status = rollup_kind_prepare(db, &rollups->save, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &rollups->find_host, "SELECT host FROM run WHERE run = ?",
                                  true, err);
    rollups->pass.save = rollups->save;
    if (status == STATUS_OK)
        status = load(rollups, err);
    if (status != STATUS_OK) {
        rollups_free(rollups);
        return status;
    }
    *out = rollups;
    return STATUS_OK;
}

void rollups_free(struct rollups *rollups)
{
    if (!rollups)
        return;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        rollup_memtable_deinit(&rollups->kinds[k].memtable);
        (void)sqlite3_finalize(rollups->kinds[k].read);
    }
    rollup_rebuild_stop(&rollups->rebuild);
    rollup_flush_free(rollups->flush);
    rollup_flush_free(rollups->pass.flush);
    (void)sqlite3_finalize(rollups->save);
    (void)sqlite3_finalize(rollups->find_host);
    free(rollups);
}

void rollups_set_pass(struct rollups *rollups, size_t above, size_t groups_most)
{
    rollups->pass.above = above;
    rollups->pass.groups_most = groups_most;
}

void rollups_watch(struct rollups *rollups, struct queue *inbox)
{
    rollups->inbox = inbox;
}

void rollups_tell_time(struct rollups *rollups, int64_t wall_ns)
{
    rollups->wall_ns = wall_ns;
}

// ---- Taking --------------------------------------------------------------------------------

static bool find_host(struct rollups *rollups, int64_t run, int64_t *out)
{
    (void)sqlite3_bind_int64(rollups->find_host, 1, run);
    const bool found = sqlite3_step(rollups->find_host) == SQLITE_ROW;
    *out = sqlite3_column_int64(rollups->find_host, 0);
    (void)sqlite3_reset(rollups->find_host);
    return found;
}

static enum status take(struct rollups *rollups, struct rollup_kind *kind,
                        const struct rollup_batch *batch)
{
    int64_t host = 0;
    if (!rollup_memtable_fits(&kind->memtable, batch->table->count - batch->first_row) ||
        !find_host(rollups, batch->run->run, &host))
        return STATUS_FULL;
    if (kind->memtable.count == 0)
        kind->since_ns = batch->now_ns;
    return rollup_memtable_add(&kind->memtable, batch, host);
}

void rollups_add(struct rollups *rollups, const struct rollup_batch *batch)
{
    struct rollup_kind *kind = &rollups->kinds[batch->table->kind];
    const size_t count = batch->table->count - batch->first_row;
    rollup_throttle_hear(&rollups->throttle, count, batch->now_ns);
    if (rollups->is_stale || kind->metrics->count == 0 || count == 0)
        return;
    // What is left out here makes the kind fall behind, and is read later.
    const bool follows = kind->fed == kind->last;
    kind->last = batch->first_id + (int64_t)count - 1;
    if (follows && take(rollups, kind, batch) == STATUS_OK)
        kind->fed = kind->last;
}

static size_t unwritten(const struct rollup_kind *kind)
{
    return kind->memtable.count - kind->first_row;
}

// Tells the pace how much work there is left.
static void worked(struct rollups *rollups, uint64_t began_ns)
{
    uint64_t rows = 0;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        const struct rollup_kind *kind = &rollups->kinds[k];
        rows += unwritten(kind);
        if (kind->fed < kind->last)
            rows += (uint64_t)(kind->last - kind->fed);
    }
    rollups->throttle.lag_rows = rows;
    rollup_throttle_worked(&rollups->throttle, began_ns, clock_monotonic_ns());
}

// ---- Forgetting ------------------------------------------------------------------------------

void rollups_gaps_changed(struct rollups *rollups)
{
    rollups->is_rebuilt = false;
}

void rollups_cleared(struct rollups *rollups)
{
    rollups_gaps_changed(rollups);
    rollup_rebuild_stop(&rollups->rebuild);
}

void rollups_forget(struct rollups *rollups)
{
    rollups_cleared(rollups);
    rollup_flush_end(rollups->flush);
    rollup_pass_end(&rollups->pass);
    rollup_levels_restart(&rollups->levels);
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        rollup_kind_clear(&rollups->kinds[k]);
    rollups->is_stale = true;
}

void rollups_rows_added(struct rollups *rollups, enum record_kind kind)
{
    struct error err;
    struct rollup_kind *of = &rollups->kinds[kind];
    if (of->metrics->count > 0 && gap_last_id(rollups->db, kind, &of->last, &err) != STATUS_OK)
        rollups->is_stale = true;
}

void rollups_rows_removed(struct rollups *rollups, enum record_kind kind)
{
    struct rollup_kind *of = &rollups->kinds[kind];
    rollups_cleared(rollups);
    rollups->is_stale |= rollups->pass.kind == kind; // its metrics have different watermarks
    rollup_kind_clear(of);
    of->fed = of->watermark;
}

// After a failure, when what was begun has been undone: waits.
static void fail(struct rollups *rollups, const struct error *err, uint64_t now_ns)
{
    if (!rollups->has_complained)
        log_write(LOG_LEVEL_WARNING, "%s (rollups wait; records are stored all the same)",
                  err->text);
    rollups->has_complained = true;
    rollups->retry_ns = now_ns + RETRY_NS;
}

// ---- Writing -----------------------------------------------------------------------------

static bool is_full(const struct rollup_kind *kind)
{
    return !rollup_memtable_fits(&kind->memtable, 1);
}

// A memtable that is begun is written to its end.  Otherwise the larger it is, the fewer rows a
// record: where there is more to read, it is filled first.
static bool is_due(const struct rollups *rollups, const struct rollup_kind *kind, uint64_t now_ns)
{
    const struct rollup_throttle *throttle = &rollups->throttle;
    const bool is_loaded =
        !rollup_throttle_is_light(throttle) && !rollup_throttle_is_quiet(throttle, now_ns);
    const size_t rows = unwritten(kind), few = is_loaded ? LOADED_ROWS : TAIL_ROWS;
    const size_t many = rollup_pass_is_for(&rollups->pass, kind)
                            ? ROWS_A_SERIES * kind->memtable.full_series.count
                            : 0;
    const size_t most = kind->memtable.room / 2;
    const size_t enough = many <= few ? few : many < most ? many : most;
    const bool is_ready =
        is_full(kind) || kind->first_row > 0 || rollups->pass.kind == kind->memtable.kind ||
        now_ns - kind->since_ns >= AGE_NS || (rows >= enough && kind->fed == kind->last);
    return rows > 0 && is_ready && rollup_pass_is_ready(kind) &&
           rollup_throttle_allows(throttle, now_ns);
}

bool rollups_are_due(const struct rollups *rollups, uint64_t now_ns)
{
    if (now_ns < rollups->retry_ns || rollups->is_stale)
        return false;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        if (is_due(rollups, &rollups->kinds[k], now_ns))
            return true;
    return false;
}

// The kind to write next, or RECORD_KIND_COUNT.
static unsigned choose(const struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns)
{
    unsigned chosen = RECORD_KIND_COUNT;
    size_t most = 0;
    const unsigned passing = rollups->pass.kind;
    if (passing != RECORD_KIND_COUNT &&
        (pace != ROLLUPS_DUE || is_due(rollups, &rollups->kinds[passing], now_ns)))
        return passing;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        const struct rollup_kind *kind = &rollups->kinds[k];
        if (!rollup_pass_is_ready(kind))
            continue;
        if (unwritten(kind) > most && (pace != ROLLUPS_DUE || is_due(rollups, kind, now_ns))) {
            chosen = k;
            most = unwritten(kind);
        }
    }
    return chosen;
}

static enum status write_slice(struct rollups *rollups, unsigned k, enum rollups_pace pace,
                               uint64_t now_ns, struct rollup_row_key *damaged, struct error *err)
{
    struct rollup_kind *kind = &rollups->kinds[k];
    const struct gap_span rebuilt =
        rollups->rebuild.kind == k ? rollup_rebuild_span(&rollups->rebuild) : (struct gap_span){0};
    if (rollups->pass.kind == k || rollup_pass_is_for(&rollups->pass, kind))
        return rollup_pass_write(&rollups->pass, kind, rebuilt, rollups->wall_ns, now_ns, damaged,
                                 err);
    const bool is_quiet = pace != ROLLUPS_ALL &&
                          rollup_throttle_is_quiet(&rollups->throttle, now_ns) &&
                          !(rollups->inbox && queue_is_nonempty(rollups->inbox));
    const struct rollup_job job = {
        .slice = {.memtable = &kind->memtable,
                  .first_row = kind->first_row,
                  .groups_most = is_quiet ? QUIET_GROUPS : SLICE_GROUPS,
                  .bytes_most = is_quiet ? 0 : SLICE_BYTES},
        .metrics = ROLLUP_METRICS_ALL,
        .levels = ROLLUP_ALL_LEVELS,
        .rebuilt = rebuilt,
        .wall_ns = rollups->wall_ns,
    };
    struct rollup_written written;
    enum status status =
        rollup_levels_write(&rollups->levels, rollups->flush, &job, &written, damaged, err);
    if (status == STATUS_OK)
        status =
            rollup_kind_save(kind, rollups->save, kind->memtable.ids[written.end_row - 1], err);
    if (status != STATUS_OK)
        return status;
    kind->first_row = written.end_row;
    if (kind->first_row == kind->memtable.count) {
        rollup_memtable_clear(&kind->memtable, !is_quiet);
        kind->first_row = 0;
    }
    return STATUS_OK;
}

static enum status write_some(struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns,
                              unsigned *kind, struct rollup_row_key *damaged, struct error *err)
{
    const uint64_t began_ns = clock_monotonic_ns(), worked_ns = clock_thread_ns();
    const uint64_t limit_ns = pace == ROLLUPS_ALL ? STEP_ALL_NS : STEP_NS;
    enum status status = STATUS_OK;
    do {
        *kind = choose(rollups, pace, now_ns);
        if (*kind == RECORD_KIND_COUNT)
            break;
        status = write_slice(rollups, *kind, pace, now_ns, damaged, err);
    } while (status == STATUS_OK && pace != ROLLUPS_ONE &&
             clock_thread_ns() - worked_ns < limit_ns);
    worked(rollups, began_ns);
    return status;
}

enum status rollups_flush(struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns,
                          bool *left, struct error *err)
{
    unsigned kind = RECORD_KIND_COUNT;
    struct rollup_row_key damaged = {0};
    *left = false;
    if (rollups->is_stale || now_ns < rollups->retry_ns)
        return STATUS_OK;
    enum status status = database_exec(rollups->db, "SAVEPOINT rollups", err);
    if (status == STATUS_OK)
        status = write_some(rollups, pace, now_ns, &kind, &damaged, err);
    if (status == STATUS_OK) {
        rollups->has_complained = false;
        *left = pace != ROLLUPS_DUE && choose(rollups, pace, now_ns) != RECORD_KIND_COUNT;
        return database_exec(rollups->db, "RELEASE rollups", err);
    }
    const bool is_damage = status == STATUS_CORRUPT && damaged.metric != 0;
    rollups_forget(rollups);
    if (sqlite3_get_autocommit(rollups->db))
        return status; // the transaction went with it
    struct error again;
    enum status undone = database_exec(rollups->db, "ROLLBACK TO rollups; RELEASE rollups", &again);
    if (undone == STATUS_OK && is_damage) {
        log_write(LOG_LEVEL_WARNING,
                  "%s (the day is rebuilt from its records, unless these have expired)", err->text);
        return rollup_rebuild_damaged(rollups->db, (enum record_kind)kind, &damaged, err);
    }
    fail(rollups, err, now_ns);
    return undone;
}

// ---- Reading -----------------------------------------------------------------------------

// The kind that is behind and has room, or RECORD_KIND_COUNT.
static unsigned lagging(const struct rollups *rollups)
{
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        if (rollups->kinds[k].fed < rollups->kinds[k].last && !is_full(&rollups->kinds[k]))
            return k;
    return RECORD_KIND_COUNT;
}

bool rollups_are_behind(const struct rollups *rollups, uint64_t now_ns)
{
    if (now_ns < rollups->retry_ns || !rollup_throttle_allows(&rollups->throttle, now_ns))
        return false;
    return rollups->is_stale || lagging(rollups) != RECORD_KIND_COUNT;
}

// All there is was read.  Where none of it is in memory, the highest ids were cleared.
static enum status end_reading(struct rollups *rollups, struct rollup_kind *kind, bool *committed,
                               struct error *err)
{
    kind->fed = kind->last;
    if (kind->memtable.count > 0)
        return STATUS_OK;
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = rollup_kind_save(kind, rollups->save, kind->fed, err);
    status = database_end(rollups->db, status, err);
    *committed = status == STATUS_OK;
    return status;
}

static enum status read_some(struct rollups *rollups, unsigned k, uint64_t now_ns, bool *committed,
                             struct error *err)
{
    struct rollup_kind *kind = &rollups->kinds[k];
    struct rollup_memtable *memtable = &kind->memtable;
    enum status status = STATUS_OK;
    if (!kind->read)
        status = rollup_memtable_prepare(rollups->db, (enum record_kind)k,
                                         "WHERE t.id > ?1 AND t.id <= ?2 ORDER BY t.id LIMIT ?3",
                                         &kind->read, err);
    if (status != STATUS_OK)
        return status;
    const size_t before = memtable->count;
    if (before == 0)
        kind->since_ns = now_ns;
    database_bind(kind->read, (int64_t[]){kind->fed, kind->last, READ_ROWS}, 3);
    status = rollup_memtable_read(memtable, rollups->db, kind->read, err);
    if (memtable->count > before)
        kind->fed = memtable->ids[memtable->count - 1];
    if (status == STATUS_FULL)
        return STATUS_OK; // the rest when this is written
    return status == STATUS_OK && memtable->count - before < READ_ROWS
               ? end_reading(rollups, kind, committed, err)
               : status;
}

bool rollups_catch_up(struct rollups *rollups, uint64_t now_ns, bool is_busy)
{
    struct error err = {.text = ""};
    bool committed = false;
    rollups->throttle.busy = is_busy;
    if (now_ns < rollups->retry_ns || !rollup_throttle_allows(&rollups->throttle, now_ns))
        return false;
    const uint64_t began_ns = clock_monotonic_ns();
    const bool was_stale = rollups->is_stale;
    enum status status = was_stale ? load(rollups, &err) : STATUS_OK;
    const unsigned k = status == STATUS_OK ? lagging(rollups) : RECORD_KIND_COUNT;
    if (k != RECORD_KIND_COUNT)
        status = read_some(rollups, k, now_ns, &committed, &err);
    if (was_stale || k != RECORD_KIND_COUNT)
        worked(rollups, began_ns);
    if (status != STATUS_OK) {
        rollups_forget(rollups);
        fail(rollups, &err, now_ns);
    }
    return committed;
}

// ---- Rebuilding ----------------------------------------------------------------------------

// Begins the next day of whatever kind, where there is one.
static enum status begin_rebuild(struct rollups *rollups, struct error *err)
{
    bool found = false;
    enum status status = STATUS_OK;
    for (unsigned k = 0; k < RECORD_KIND_COUNT && status == STATUS_OK && !found; k++)
        if (rollups->kinds[k].metrics->count > 0)
            status = rollup_rebuild_begin(&rollups->rebuild, (enum record_kind)k,
                                          rollups->kinds[k].watermark, &found, err);
    rollups->is_rebuilt = status == STATUS_OK && !found;
    return status;
}

static enum status rebuild_some(struct rollups *rollups, struct error *err)
{
    struct rollup_rebuild *rebuild = &rollups->rebuild;
    const uint64_t began_ns = clock_monotonic_ns();
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK && rebuild->kind == RECORD_KIND_COUNT)
        status = begin_rebuild(rollups, err);
    while (status == STATUS_OK && rebuild->kind != RECORD_KIND_COUNT &&
           clock_monotonic_ns() - began_ns < STEP_NS)
        status = rollup_rebuild_step(rebuild, rollups->kinds[rebuild->kind].watermark,
                                     rollups->wall_ns, err);
    return database_end(rollups->db, status, err);
}

bool rollups_rebuild(struct rollups *rollups, uint64_t now_ns)
{
    struct error err = {.text = ""};
    if (rollups->is_stale || rollups->is_rebuilt || now_ns < rollups->retry_ns ||
        now_ns < rollups->rebuild_rest_ns || rollups->pass.kind != RECORD_KIND_COUNT)
        return false;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        if (rollups->kinds[k].ahead.id > 0) // its metrics have different records
            return false;
    const enum status status = rebuild_some(rollups, &err);
    if (status == STATUS_OK) {
        rollups->rebuild_has_complained = false;
        return !rollups->is_rebuilt;
    }
    rollup_flush_end(rollups->flush);
    if (!rollups->rebuild_has_complained)
        log_write(LOG_LEVEL_WARNING, "%s (what was cleared is read without rollups)", err.text);
    rollups->rebuild_has_complained = true;
    rollups->is_rebuilt = false;
    // A day whose records are damaged holds no other up.
    if (status == STATUS_CORRUPT && rollup_rebuild_pass_over(&rollups->rebuild))
        return true;
    rollups->rebuild_rest_ns = now_ns + REBUILD_REST_NS;
    rollup_rebuild_stop(&rollups->rebuild);
    return true;
}

// ---- Levels that are not kept -----------------------------------------------------------

bool rollups_prune(struct rollups *rollups, uint64_t now_ns)
{
    struct error err = {.text = ""};
    bool added = false;
    if (rollups->is_stale || now_ns < rollups->retry_ns || now_ns < rollups->prune_rest_ns ||
        !rollup_levels_are_due(&rollups->levels, rollups->wall_ns))
        return false;
    const uint64_t began_ns = clock_monotonic_ns();
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", &err);
    while (status == STATUS_OK && rollup_levels_are_due(&rollups->levels, rollups->wall_ns) &&
           clock_monotonic_ns() - began_ns < STEP_NS)
        status = rollup_levels_step(&rollups->levels, rollups->wall_ns, &added, &err);
    status = database_end(rollups->db, status, &err);
    rollups->prune_rest_ns = now_ns + PRUNE_REST_TIMES * (clock_monotonic_ns() - began_ns);
    if (status != STATUS_OK) {
        rollups_forget(rollups);
        fail(rollups, &err, now_ns);
    }
    return true;
}
