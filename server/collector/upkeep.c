#include "server/collector/upkeep.h"

#include <stdlib.h>

#include "common/store/checkpoint.h"
#include "common/store/database.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/collector/retention.h"
#include "server/collector/rollups.h"
#include "server/collector/sealing.h"
#include "server/collector/writer_clear.h"

#define LONG_NS   UINT64_C(1000000000)  // somebody looks again before that
#define FAILED_NS UINT64_C(10000000000) // what cannot be written now is not tried before
#define HOUR_NS   UINT64_C(250000000)   // enough to make most hours again

enum {
    SHARE = 3,           // a third of what the group took may be spent, whoever waits
    SHARE_NS = 20000000, // but no more than that
};

struct upkeep {
    struct upkeep_parts parts;
    struct writer_clear *clear;
    struct retention *retention;
    struct sealing *sealing;
    struct checkpoint checkpoint;
    struct upkeep_load load;
    unsigned turn;         // of the task that is next
    bool repairing;        // there is more to be made again
    uint64_t retained_ns;  // when retention had its last slice
    uint64_t fold_rest_ns; // no fold before, after one failed
    bool fold_failing, retention_failing, sealing_failing, checkpoint_failing; // and it was said
    bool starved;
};

static bool somebody_waits(void *context)
{
    const struct upkeep *upkeep = context;
    return queue_has_some(upkeep->parts.inbox);
}

enum status upkeep_new(struct upkeep **out, const struct upkeep_parts *parts, struct error *err)
{
    struct upkeep *upkeep = calloc(1, sizeof *upkeep);
    if (!upkeep)
        return error_set(err, STATUS_NOMEM, "upkeep: out of memory");
    upkeep->parts = *parts;
    checkpoint_init(&upkeep->checkpoint, clock_monotonic_ns());
    checkpoint_watch(&upkeep->checkpoint, parts->db);
    if (parts->rollups)
        rollups_watch(parts->rollups, somebody_waits, upkeep);
    enum status status =
        retention_new(&upkeep->retention, parts->db, parts->retention, parts->rollups != NULL, err);
    if (status == STATUS_OK)
        status = sealing_new(&upkeep->sealing, parts->db, parts->seal_after_ns,
                             parts->rollups != NULL, err);
    if (status == STATUS_OK)
        status = writer_clear_new(
            &upkeep->clear, &(struct writer_clear_parts){parts->db, parts->rollups, parts->replies},
            err);
    if (status != STATUS_OK) {
        upkeep_free(upkeep);
        return status;
    }
    *out = upkeep;
    return STATUS_OK;
}

void upkeep_free(struct upkeep *upkeep)
{
    if (!upkeep)
        return;
    checkpoint_watch(NULL, upkeep->parts.db);
    if (upkeep->parts.rollups)
        rollups_watch(upkeep->parts.rollups, NULL, NULL);
    writer_clear_free(upkeep->clear);
    retention_free(upkeep->retention);
    sealing_free(upkeep->sealing);
    free(upkeep);
}

void upkeep_clear(struct upkeep *upkeep, struct work *work)
{
    writer_clear_begin(upkeep->clear, work);
}

void upkeep_committed(struct upkeep *upkeep, bool records)
{
    upkeep->starved = false;
    checkpoint_note(&upkeep->checkpoint, records, clock_monotonic_ns());
}

bool upkeep_is_starved(const struct upkeep *upkeep)
{
    return upkeep->starved;
}

// ---- Tasks -----------------------------------------------------------------------------

static void note_commit(struct upkeep *upkeep)
{
    checkpoint_note(&upkeep->checkpoint, true, clock_monotonic_ns());
}

static bool has_rollups(const struct upkeep *upkeep)
{
    return upkeep->parts.rollups && !upkeep->load.is_failing;
}

static bool clear_some(struct upkeep *upkeep)
{
    if (!writer_clear_is_busy(upkeep->clear))
        return false;
    writer_clear_step(upkeep->clear);
    note_commit(upkeep);
    if (!writer_clear_is_busy(upkeep->clear))
        sealing_again(upkeep->sealing);
    return true;
}

// Lets go of a slice of what is too old.  Where an hour is being made again, that begins
// anew with it, and so has some time for itself.
static bool retain(struct upkeep *upkeep)
{
    struct error err = {.text = "retention: failed"};
    bool changed = false;
    const uint64_t began_ns = clock_monotonic_ns();
    if (writer_clear_is_busy(upkeep->clear) || began_ns < retention_due_ns(upkeep->retention) ||
        (upkeep->repairing && began_ns < upkeep->retained_ns + HOUR_NS))
        return false;
    upkeep->retained_ns = began_ns;
    const enum status status = retention_step(upkeep->retention, clock_wall_ns(), &changed, &err);
    if (status != STATUS_OK && !upkeep->retention_failing && !upkeep->load.is_failing)
        log_write(LOG_LEVEL_WARNING, "retention: %s (tried again every minute)", err.text);
    if (status != STATUS_OK || changed)
        upkeep->retention_failing = status != STATUS_OK;
    retention_took(upkeep->retention, began_ns, clock_monotonic_ns(), upkeep->load.is_busy);
    if (changed)
        note_commit(upkeep);
    if (changed && upkeep->parts.rollups)
        rollups_gaps_changed(upkeep->parts.rollups);
    return changed;
}

// Packs what is old, a step at a time.
static bool seal(struct upkeep *upkeep)
{
    struct error err = {.text = "sealing: failed"};
    bool changed = false;
    const uint64_t began_ns = clock_monotonic_ns();
    if (writer_clear_is_busy(upkeep->clear) || upkeep->load.is_failing ||
        began_ns < sealing_due_ns(upkeep->sealing))
        return false;
    const enum status status = sealing_step(upkeep->sealing, clock_wall_ns(), &changed, &err);
    if (status != STATUS_OK && !upkeep->sealing_failing)
        log_write(LOG_LEVEL_WARNING, "sealing: %s (tried again every minute)", err.text);
    if (status != STATUS_OK || changed)
        upkeep->sealing_failing = status != STATUS_OK;
    sealing_took(upkeep->sealing, began_ns, clock_monotonic_ns(), upkeep->load.is_busy);
    if (changed)
        note_commit(upkeep);
    return true;
}

// Reads records that the rollups do not have yet, or not any longer.
static bool catch_up(struct upkeep *upkeep)
{
    if (!has_rollups(upkeep))
        return false;
    const uint64_t now_ns = clock_monotonic_ns();
    const bool is_behind = rollups_are_behind(upkeep->parts.rollups, now_ns);
    rollups_tell_time(upkeep->parts.rollups, clock_wall_ns());
    if (rollups_catch_up(upkeep->parts.rollups, now_ns, upkeep->load.is_busy))
        note_commit(upkeep);
    return is_behind;
}

static bool fold_is_due(const struct upkeep *upkeep, uint64_t now_ns)
{
    return now_ns >= upkeep->fold_rest_ns && rollups_are_due(upkeep->parts.rollups, now_ns);
}

// Folds what is due, for some milliseconds.  What could not be committed is read again.
static bool fold(struct upkeep *upkeep)
{
    struct error err = {.text = "rollups: failed"};
    struct rollups *rollups = upkeep->parts.rollups;
    bool left = false;
    const uint64_t now_ns = clock_monotonic_ns();
    if (!has_rollups(upkeep) || !fold_is_due(upkeep, now_ns))
        return false;
    enum status status = database_exec(upkeep->parts.db, "BEGIN IMMEDIATE", &err);
    if (status == STATUS_OK)
        status = rollups_flush(rollups, ROLLUPS_DUE, now_ns, &left, &err);
    if (status == STATUS_OK)
        status = database_exec(upkeep->parts.db, "COMMIT", &err);
    if (status != STATUS_OK) {
        database_rollback(upkeep->parts.db);
        rollups_forget(rollups);
        upkeep->fold_rest_ns = now_ns + FAILED_NS;
        if (!upkeep->fold_failing)
            log_write(LOG_LEVEL_WARNING, "%s (rollups wait; records are stored all the same)",
                      err.text);
    }
    upkeep->fold_failing = status != STATUS_OK;
    note_commit(upkeep);
    return true;
}

static bool repair(struct upkeep *upkeep)
{
    upkeep->repairing = has_rollups(upkeep) && !writer_clear_is_busy(upkeep->clear) &&
                        rollups_repair(upkeep->parts.rollups, clock_monotonic_ns());
    if (upkeep->repairing)
        note_commit(upkeep);
    return upkeep->repairing;
}

static bool prune(struct upkeep *upkeep)
{
    if (!has_rollups(upkeep) || !rollups_prune(upkeep->parts.rollups, clock_monotonic_ns()))
        return false;
    note_commit(upkeep);
    return true;
}

// Whoever waits goes first, as long as the log is not too long.
static bool fold_log(struct upkeep *upkeep)
{
    struct error err;
    struct checkpoint *checkpoint = &upkeep->checkpoint;
    if (queue_has_some(upkeep->parts.inbox) && !checkpoint_presses(checkpoint))
        return false;
    const uint64_t now_ns = clock_monotonic_ns();
    const enum status status = checkpoint_tick(checkpoint, upkeep->parts.db, now_ns, &err);
    const bool has_tried = checkpoint->tried_at_ns == now_ns;
    if (status != STATUS_OK && !upkeep->checkpoint_failing && !upkeep->load.is_failing)
        log_write(LOG_LEVEL_WARNING, "%s (tried again every second)", err.text);
    // Most looks try nothing: what failed still fails until there is nothing to fold.
    if (status == STATUS_OK && checkpoint->wanted)
        return has_tried;
    if (status == STATUS_NOMEM || upkeep->checkpoint_failing)
        upkeep->starved = status == STATUS_NOMEM;
    upkeep->checkpoint_failing = status != STATUS_OK;
    return has_tried;
}

// Each does a slice; false where there was nothing to do.
static bool (*const tasks[])(struct upkeep *) = {fold_log, fold,     clear_some, retain,
                                                 seal,     catch_up, repair,     prune};

enum { TASK_COUNT = sizeof tasks / sizeof *tasks };

void upkeep_run(struct upkeep *upkeep, const struct upkeep_load *load)
{
    const uint64_t began_ns = clock_monotonic_ns();
    const uint64_t share_ns = load->group_ns / SHARE < SHARE_NS ? load->group_ns / SHARE : SHARE_NS;
    upkeep->load = *load;
    for (unsigned i = 0; i < TASK_COUNT; i++) {
        const unsigned task = upkeep->turn;
        upkeep->turn = (task + 1) % TASK_COUNT;
        if (tasks[task](upkeep) && queue_has_some(upkeep->parts.inbox) &&
            clock_monotonic_ns() - began_ns >= share_ns)
            return;
    }
}

uint64_t upkeep_patience_ns(const struct upkeep *upkeep, const struct upkeep_load *load)
{
    const struct rollups *rollups = load->is_failing ? NULL : upkeep->parts.rollups;
    const uint64_t now_ns = clock_monotonic_ns();
    const uint64_t retain_ns = retention_due_ns(upkeep->retention);
    const uint64_t seal_ns = load->is_failing ? UINT64_MAX : sealing_due_ns(upkeep->sealing);
    const uint64_t due_ns = seal_ns < retain_ns ? seal_ns : retain_ns;
    if (writer_clear_is_busy(upkeep->clear) || upkeep->repairing || due_ns <= now_ns ||
        (rollups && (rollups_are_behind(rollups, now_ns) || fold_is_due(upkeep, now_ns))))
        return 0;
    return due_ns - now_ns < LONG_NS ? due_ns - now_ns : LONG_NS;
}
