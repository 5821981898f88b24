// The writer thread: the only thread that changes the store, with group commit.
//
// A group is the queued messages of all producers, up to a limit of records and time.  One
// transaction stores the records of a group, with the accounting of their runs: ranges of
// record numbers, counts (the ledger) and states.  The messages of a group are acknowledged
// after the commit is on disk.  If the store cannot be written (a full disk), the transaction is
// rolled back, nothing is acknowledged, and producers send the records again.  Clearing,
// baselines, imports and maintenance run between groups, in transactions of their own.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/access/access.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/limits.h"

struct sqlite3;
struct writer;

struct writer_config {
    const char *path; // of the store, whose lock the caller holds; borrowed until writer_join
    struct channels *channels; // borrowed
    struct access *access;     // borrowed; NULL: no keys
    struct limits limits;
    struct retention_rules retention;
    bool no_rollups; // do not write rollups
};

// Opens or creates the store and starts the thread.  Each round of the thread's loop sets
// channels->writer_beat_ns, the heartbeat of the collector's watchdog, except while it is out of
// memory: then the service manager restarts the collector.
MUST_CHECK enum status writer_start(struct writer **out, const struct writer_config *config,
                                    struct error *err);

// Returns the store's UUID, 16 bytes.
const unsigned char *writer_store_uuid(const struct writer *writer);

// Waits until the thread has received JOB_STOP, has committed the jobs before it and has
// closed the store.  Accepts NULL.
void writer_join(struct writer *writer);

// Adds the counts of rejected messages by reason to the SQL table refusal, in the current
// transaction.  The thread does so itself; for tests.
MUST_CHECK enum status writer_save_refusals(struct sqlite3 *db,
                                            const uint64_t counts[REFUSAL_COUNT], int64_t now_ns,
                                            struct error *err);
