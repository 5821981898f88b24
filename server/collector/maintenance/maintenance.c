#include "server/collector/maintenance/maintenance.h"

#include <stdlib.h>

#include "common/store/retention/clear.h"
#include "common/store/retention/expire.h"
#include "common/store/sqlite/checkpoint.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/collector/access/quota.h"
#include "server/collector/maintenance/retention.h"
#include "server/collector/rollup/rollups.h"

#define LONG_NS   UINT64_C(1000000000)  // longest wait for jobs
#define PRESS_NS  UINT64_C(100000000)   // interval of looks at the store's size
#define FAILED_NS UINT64_C(10000000000) // retry interval after a failed write
#define RESET_NS  UINT64_C(1000000000)  // the same after the log could not be reset
#define GATE_NS   UINT64_C(10000000)    // interval of looks whether readers have left

enum {
    SHARE = 3,           // while jobs wait, slices take a third of the group's time
    SHARE_NS = 20000000, // but at most this
};

struct maintenance {
    struct sqlite3 *db;
    struct rollups *rollups; // NULL: none are written
    struct queue *inbox;
    struct quota *quota; // told how full the store is; NULL: none
    struct reader_gate *gate;
    bool log_is_long;     // as `gate` was told
    uint64_t reset_at_ns; // when to try to reset the log again
    uint64_t press_at_ns; // when to look
    bool is_too_large;    // the store exceeds its limit of bytes, at the last look
    struct queue *replies;
    struct job *clear; // the JOB_CLEAR or JOB_FORGET that is running, or NULL
    struct clearing clearing;
    struct retention *retention;
    struct checkpoint checkpoint;
    struct maintenance_load load;
    unsigned turn;           // index of the next task
    bool rebuilding;         // there may be more to rebuild
    uint64_t flush_retry_ns; // no flush before this, after one failed
    bool flush_failing, retention_failing, checkpoint_failing; // already logged
    bool starved;
};

// ---- Clearing --------------------------------------------------------------------------

static void reply_clear(struct maintenance *maintenance, const struct job *job, enum status status,
                        const struct error *err)
{
    struct result *result = NULL;
    struct error why = *err;
    if (status == STATUS_OK)
        status = clear_answer(&result, &maintenance->clearing, &why);
    // Any other failure is the collector's, not the query's.
    const enum status told = status == STATUS_OK || status == STATUS_NO_DATA ? status : STATUS_IO;
    answer_submit(maintenance->replies,
                  reply_encode(&job->from, job->query_id, told, result, &why));
    result_free(result);
}

static void end_clear(struct maintenance *maintenance, enum status status, const struct error *err)
{
    struct admin_act *act = &maintenance->clear->act;
    admin_act_end(act, status, err, (int64_t)maintenance->clearing.cleared);
    admin_log_add(maintenance->db, act);
    reply_clear(maintenance, maintenance->clear, status, err);
    job_free(maintenance->clear);
    maintenance->clear = NULL;
}

void maintenance_clear(struct maintenance *maintenance, struct job *job)
{
    struct error err = {.text = "out of memory"};
    if (maintenance->clear) {
        reply_clear(maintenance, job,
                    error_set(&err, STATUS_BUSY, "the collector is clearing already (try again)"),
                    &err);
        job_free(job);
        return;
    }
    maintenance->clear = job;
    struct clearing *clearing = &maintenance->clearing;
    enum status status = job->kind == JOB_FORGET
                             ? clear_begin_forget(clearing, maintenance->db, job->query, &err)
                             : clear_begin(clearing, maintenance->db, &job->query->filter, &err);
    if (status != STATUS_OK)
        end_clear(maintenance, status, &err);
}

// Records that are not in the rollups yet may be in memory, to be flushed.
static void tell_rollups(struct maintenance *maintenance, enum record_kind kind, int64_t last_id)
{
    struct error err;
    int64_t held_id = 0;
    if (expire_last_id(maintenance->db, kind, &held_id, &err) == STATUS_OK && last_id <= held_id)
        rollups_cleared(maintenance->rollups);
    else
        rollups_rows_removed(maintenance->rollups, kind);
}

// ---- Opening ---------------------------------------------------------------------------

enum status maintenance_new(struct maintenance **out, struct sqlite3 *db, struct rollups *rollups,
                            const struct retention_rules *rules, struct channels *channels,
                            struct error *err)
{
    struct maintenance *maintenance = calloc(1, sizeof *maintenance);
    if (!maintenance)
        return error_no_memory(err, "maintenance");
    maintenance->db = db;
    maintenance->rollups = rollups;
    maintenance->inbox = channels->inbox;
    maintenance->quota = channels->quota;
    maintenance->gate = &channels->gate;
    reader_gate_limit_store(maintenance->gate, rules->bytes);
    maintenance->replies = channels->replies;
    checkpoint_init(&maintenance->checkpoint, clock_monotonic_ns());
    checkpoint_watch(&maintenance->checkpoint, db);
    if (rollups)
        rollups_watch(rollups, channels->inbox);
    enum status status = retention_new(&maintenance->retention, db, rules, rollups != NULL, err);
    if (status != STATUS_OK) {
        maintenance_free(maintenance);
        return status;
    }
    *out = maintenance;
    return STATUS_OK;
}

void maintenance_free(struct maintenance *maintenance)
{
    struct error err = {0};
    if (!maintenance)
        return;
    checkpoint_watch(NULL, maintenance->db);
    if (maintenance->rollups)
        rollups_watch(maintenance->rollups, NULL);
    if (maintenance->clear)
        end_clear(maintenance,
                  error_set(&err, STATUS_CANCELLED, "the collector ended before all was cleared"),
                  &err);
    retention_free(maintenance->retention);
    free(maintenance);
}

static void note_commit(struct maintenance *maintenance)
{
    checkpoint_note(&maintenance->checkpoint, clock_monotonic_ns());
}

void maintenance_committed(struct maintenance *maintenance)
{
    maintenance->starved = false;
    note_commit(maintenance);
}

bool maintenance_is_starved(const struct maintenance *maintenance)
{
    return maintenance->starved;
}

// ---- Tasks -----------------------------------------------------------------------------

static bool has_rollups(const struct maintenance *maintenance)
{
    return maintenance->rollups && !maintenance->load.is_failing;
}

static bool clear_records(struct maintenance *maintenance)
{
    struct error err = {.text = "out of memory"};
    struct clearing *clearing = &maintenance->clearing;
    bool done = false;
    if (!maintenance->clear)
        return false;
    const uint64_t began_ns = clock_monotonic_ns(), before = clearing->cleared;
    const int kind = clearing->kind;
    const int64_t last_id = clearing->after + clearing->slice.now;
    const enum status status = clear_slice(clearing, maintenance->db, &done, &err);
    if (maintenance->rollups && clearing->cleared > before)
        tell_rollups(maintenance, (enum record_kind)kind, last_id);
    clear_took(clearing, clock_monotonic_ns() - began_ns);
    if (status != STATUS_OK || done)
        end_clear(maintenance, status, &err);
    note_commit(maintenance);
    return true;
}

// Limits what owners may add while the store exceeds its limit of bytes.
static void press(struct maintenance *maintenance, uint64_t now_ns)
{
    struct error err;
    uint64_t over;
    size_t messages, queued;
    if (!maintenance->quota || now_ns < maintenance->press_at_ns)
        return;
    maintenance->press_at_ns = now_ns + PRESS_NS;
    queue_load(maintenance->inbox, &messages, &queued);
    if (retention_excess(maintenance->retention, &over, &err) != STATUS_OK)
        return;
    maintenance->is_too_large = over > 0;
    quota_press(maintenance->quota, over, queued, now_ns);
}

static bool retain(struct maintenance *maintenance)
{
    struct error err = {.text = "retention: failed"};
    bool changed = false;
    const uint64_t began_ns = clock_monotonic_ns();
    if (maintenance->clear || began_ns < retention_due_ns(maintenance->retention))
        return false;
    const enum status status =
        retention_step(maintenance->retention, clock_wall_ns(), &changed, &err);
    if (status != STATUS_OK && !maintenance->retention_failing && !maintenance->load.is_failing)
        log_write(LOG_LEVEL_WARNING, "retention: %s (tried again every minute)", err.text);
    if (status != STATUS_OK || changed)
        maintenance->retention_failing = status != STATUS_OK;
    retention_record_time(maintenance->retention, began_ns, clock_monotonic_ns(),
                          maintenance->load.is_busy);
    if (changed)
        note_commit(maintenance);
    if (changed && maintenance->rollups)
        rollups_gaps_changed(maintenance->rollups);
    return changed;
}

// Reads records that are missing from the rollups.
static bool catch_up(struct maintenance *maintenance)
{
    if (!has_rollups(maintenance))
        return false;
    const uint64_t now_ns = clock_monotonic_ns();
    const bool is_behind = rollups_are_behind(maintenance->rollups, now_ns);
    rollups_tell_time(maintenance->rollups, clock_wall_ns());
    if (rollups_catch_up(maintenance->rollups, now_ns, maintenance->load.is_busy))
        note_commit(maintenance);
    return is_behind;
}

static bool flush_is_due(const struct maintenance *maintenance, uint64_t now_ns)
{
    return now_ns >= maintenance->flush_retry_ns && rollups_are_due(maintenance->rollups, now_ns);
}

// Flushes due rollups for some milliseconds.  After a failure their rows are read again.
static bool flush(struct maintenance *maintenance)
{
    struct error err = {.text = "rollups: failed"};
    struct rollups *rollups = maintenance->rollups;
    bool left = false;
    const uint64_t now_ns = clock_monotonic_ns();
    if (!has_rollups(maintenance) || !flush_is_due(maintenance, now_ns))
        return false;
    enum status status = database_exec(maintenance->db, "BEGIN IMMEDIATE", &err);
    if (status == STATUS_OK)
        status = rollups_flush(rollups, ROLLUPS_DUE, now_ns, &left, &err);
    status = database_end(maintenance->db, status, &err);
    if (status != STATUS_OK) {
        rollups_forget(rollups);
        maintenance->flush_retry_ns = now_ns + FAILED_NS;
        if (!maintenance->flush_failing)
            log_write(LOG_LEVEL_WARNING, "%s (rollups are delayed; records are stored)", err.text);
    }
    maintenance->flush_failing = status != STATUS_OK;
    note_commit(maintenance);
    return true;
}

static bool rebuild(struct maintenance *maintenance)
{
    const bool was_rebuilding = maintenance->rebuilding;
    maintenance->rebuilding = has_rollups(maintenance) && !maintenance->clear &&
                              rollups_rebuild(maintenance->rollups, clock_monotonic_ns());
    if (maintenance->rebuilding)
        note_commit(maintenance);
    else if (was_rebuilding)
        retention_sums_built(maintenance->retention);
    return maintenance->rebuilding;
}

static bool prune(struct maintenance *maintenance)
{
    if (!has_rollups(maintenance) || !rollups_prune(maintenance->rollups, clock_monotonic_ns()))
        return false;
    note_commit(maintenance);
    return true;
}

// Waiting jobs go first unless the log is too long.
static void checkpoint_log(struct maintenance *maintenance)
{
    struct error err;
    struct checkpoint *checkpoint = &maintenance->checkpoint;
    const enum status status =
        checkpoint_tick(checkpoint, maintenance->db, queue_is_nonempty(maintenance->inbox),
                        clock_monotonic_ns(), &err);
    if (status != STATUS_OK && !maintenance->checkpoint_failing && !maintenance->load.is_failing)
        log_write(LOG_LEVEL_WARNING, "%s (tried again every second)", err.text);
    // Most calls try nothing: a failure lasts until a checkpoint has completed.
    if (status == STATUS_OK && checkpoint->wanted)
        return;
    if (status == STATUS_NOMEM || maintenance->checkpoint_failing)
        maintenance->starved = status == STATUS_NOMEM;
    maintenance->checkpoint_failing = status != STATUS_OK;
}

// Resets a log that has become long, at a moment without readers.
static void reset_log(struct maintenance *maintenance)
{
    struct error err;
    struct checkpoint *checkpoint = &maintenance->checkpoint;
    const uint64_t now_ns = clock_monotonic_ns();
    const bool is_long = checkpoint_log_is_long(checkpoint);
    if (is_long == maintenance->log_is_long && (!is_long || now_ns < maintenance->reset_at_ns))
        return;
    maintenance->log_is_long = is_long;
    if (is_long && !reader_gate_close(maintenance->gate))
        return;
    if (is_long && checkpoint_restart(checkpoint, maintenance->db, &err) != STATUS_OK)
        log_write(LOG_LEVEL_DEBUG, "%s", err.text);
    maintenance->log_is_long = checkpoint_log_is_long(checkpoint);
    maintenance->reset_at_ns = maintenance->log_is_long ? now_ns + RESET_NS : 0;
    reader_gate_open(maintenance->gate, maintenance->log_is_long);
}

// Each runs one slice; returns false when there was nothing to do.
static bool (*const tasks[])(struct maintenance *) = {flush,    clear_records, retain,
                                                      catch_up, rebuild,       prune};

enum { TASK_COUNT = sizeof tasks / sizeof *tasks };

void maintenance_run(struct maintenance *maintenance, const struct maintenance_load *load)
{
    const uint64_t began_ns = clock_monotonic_ns();
    const uint64_t allowance_ns =
        load->group_ns / SHARE < SHARE_NS ? load->group_ns / SHARE : SHARE_NS;
    maintenance->load = *load;
    checkpoint_log(maintenance);
    reset_log(maintenance);
    press(maintenance, began_ns);
    if (maintenance->is_too_large) // what retention deletes is what all owners may add
        (void)retain(maintenance);
    for (unsigned i = 0; i < TASK_COUNT; i++) {
        const unsigned task = maintenance->turn;
        maintenance->turn = (task + 1) % TASK_COUNT;
        if (tasks[task](maintenance) && queue_is_nonempty(maintenance->inbox) &&
            clock_monotonic_ns() - began_ns >= allowance_ns)
            return;
    }
}

bool maintenance_removed_runs(struct maintenance *maintenance)
{
    return retention_removed_runs(maintenance->retention);
}

uint64_t maintenance_timeout_ns(const struct maintenance *maintenance,
                                const struct maintenance_load *load)
{
    const struct rollups *rollups = load->is_failing ? NULL : maintenance->rollups;
    const uint64_t now_ns = clock_monotonic_ns();
    const uint64_t due_ns = retention_due_ns(maintenance->retention);
    if (maintenance->clear || maintenance->rebuilding || due_ns <= now_ns ||
        (rollups && (rollups_are_behind(rollups, now_ns) || flush_is_due(maintenance, now_ns))))
        return 0;
    if (maintenance->log_is_long && now_ns >= maintenance->reset_at_ns)
        return GATE_NS;
    return due_ns - now_ns < LONG_NS ? due_ns - now_ns : LONG_NS;
}
