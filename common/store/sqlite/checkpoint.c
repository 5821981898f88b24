#include "common/store/sqlite/checkpoint.h"

#include <stddef.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

static const uint64_t quiet_ns = UINT64_C(500000000);
static const uint64_t latest_ns = UINT64_C(2000000000);
static const uint64_t pause_ns = UINT64_C(1000000000);

// Of 4096 bytes mostly.  What is folded at once takes some milliseconds and two waits
// for the disk.
enum { PAGES_SOME = 1000, PAGES_MANY = 4000, PAGES_LONG = 4500 };

enum { RESTART_MS = 20 }; // wait for readers of other processes, which holds up the writer

void checkpoint_init(struct checkpoint *checkpoint, uint64_t now_ns)
{
    *checkpoint = (struct checkpoint){0};
    checkpoint_note(checkpoint, now_ns);
}

static int on_commit(void *context, sqlite3 *db, const char *name, int pages)
{
    struct checkpoint *checkpoint = context;
    (void)db;
    (void)name;
    checkpoint->pages = pages > 0 ? (unsigned)pages : 0;
    if (checkpoint->pages < checkpoint->pages_tried) // the log was reset
        checkpoint->pages_tried = 0;
    return SQLITE_OK;
}

void checkpoint_watch(struct checkpoint *checkpoint, sqlite3 *db)
{
    if (checkpoint)
        (void)sqlite3_wal_hook(db, on_commit, checkpoint);
    else
        (void)sqlite3_wal_autocheckpoint(db, PAGES_MANY);
}

void checkpoint_note(struct checkpoint *checkpoint, uint64_t now_ns)
{
    if (!checkpoint->wanted)
        checkpoint->wanted_at_ns = now_ns;
    checkpoint->wanted = true;
    checkpoint->changed_at_ns = now_ns;
}

// Folds what can be folded; `*complete`: all of the log.
static enum status fold(sqlite3 *db, int mode, bool *complete, struct error *err)
{
    int frames = 0, folded = 0;
    const int rc = sqlite3_wal_checkpoint_v2(db, NULL, mode, &frames, &folded);
    *complete = rc == SQLITE_OK && frames == folded;
    if (database_status(rc) == STATUS_OK || database_status(rc) == STATUS_BUSY)
        return STATUS_OK;
    return database_error(db, "store: folding its log into it", err);
}

bool checkpoint_log_is_long(const struct checkpoint *checkpoint)
{
    return checkpoint->pages >= PAGES_LONG;
}

enum status checkpoint_restart(struct checkpoint *checkpoint, sqlite3 *db, struct error *err)
{
    bool complete = false;
    (void)sqlite3_busy_timeout(db, RESTART_MS);
    enum status status = fold(db, SQLITE_CHECKPOINT_RESTART, &complete, err);
    (void)sqlite3_busy_timeout(db, DATABASE_BUSY_MS);
    if (complete)
        checkpoint->pages = checkpoint->pages_tried = 0;
    return status;
}

enum status checkpoint_tick(struct checkpoint *checkpoint, sqlite3 *db, bool is_busy,
                            uint64_t now_ns, struct error *err)
{
    const unsigned pages_most = is_busy ? PAGES_MANY : PAGES_SOME;
    const bool is_long = checkpoint->pages - checkpoint->pages_tried >= pages_most;
    const bool is_due = !is_busy && now_ns - checkpoint->tried_at_ns >= pause_ns &&
                        (now_ns - checkpoint->changed_at_ns >= quiet_ns ||
                         now_ns - checkpoint->wanted_at_ns >= latest_ns);
    bool complete = false;
    if (!checkpoint->wanted || (!is_long && !is_due))
        return STATUS_OK;
    checkpoint->tried_at_ns = now_ns;
    checkpoint->pages_tried = checkpoint->pages;
    enum status status = fold(db, SQLITE_CHECKPOINT_PASSIVE, &complete, err);
    checkpoint->wanted = !complete;
    return status;
}
