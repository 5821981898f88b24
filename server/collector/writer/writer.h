// The writer thread, the only one that changes the store: group commit.
//
// Producers' messages are processed in groups: what is queued, up to a limit of records and
// time, in one transaction that stores records, ranges, ledgers and run states together.  The
// group's messages are acknowledged only after the commit, which is on disk.  When the store
// cannot be written (a full disk), the transaction is rolled back, nothing is acknowledged, and
// producers send the records again.  Clearing, baselines, imports and maintenance run between
// groups, in transactions of their own.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/access/access.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/limits.h"

struct writer;

struct writer_config {
    const char *path; // of the store; the caller holds its lock
    struct channels *channels;
    struct access *access; // NULL: no keys
    struct limits limits;
    struct retention_rules retention;
    bool no_rollups; // do not write rollups
};

// Opens or creates the store and starts the thread.  channels->writer_beat_ns is not set while it
// is out of memory.
MUST_CHECK enum status writer_start(struct writer **out, const struct writer_config *config,
                                    struct error *err);

// The store's UUID; constant.
const unsigned char *writer_store_uuid(const struct writer *writer);

// Waits until the thread has received JOB_STOP, has committed the jobs before it and has
// closed the store.  Accepts NULL.
void writer_join(struct writer *writer);

#endif
