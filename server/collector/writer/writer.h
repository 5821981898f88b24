// The one thread that writes the store.
//
// It takes what the ingest threads decoded, in groups: everything that is
// queued, in one transaction that stores records, ranges, ledgers and run states
// together; and only after its commit, which is on disk, are the group's
// messages acknowledged.  Where the store cannot be written (a full disk), the
// transaction is undone, nothing is acknowledged, and the producers come again.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/access/access.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/threads/commit_notifier.h"
#include "server/collector/threads/limits.h"
#include "server/collector/threads/queue.h"
#include "server/collector/threads/reject_counters.h"
#include "server/collector/threads/write_error.h"

struct writer;

struct writer_config {
    const char *path;      // of the store, whose lock the caller holds
    struct queue *inbox;   // struct work; owned by the caller
    struct queue *acks;    // struct answer, for ingest
    struct queue *replies; // struct answer, for the query service
    struct commit_notifier *commit_notifier;
    struct reject_counters *reject_counters; // may be NULL
    struct access *access;                   // NULL: no keys
    struct peer_credit *peer_credit;         // is told the credit; may be NULL
    struct write_error *write_error;         // is told what cannot be written; may be NULL
    struct limits limits;
    struct retention_rules retention;
    bool no_rollups; // none are made
};

// Opens (or makes) the store and starts the thread.
MUST_CHECK enum status writer_start(struct writer **out, const struct writer_config *config,
                                    struct error *err);

// The store's identity; constant.
const unsigned char *writer_store_uuid(const struct writer *writer);

// When the thread last took a turn (monotonic); while it has no memory to write with,
// when it last had.  Any thread.
uint64_t writer_beaten_ns(struct writer *writer);

// Waits until the thread has taken JOB_STOP from its inbox, has committed all
// before it, and has closed the store.  NULL is fine.
void writer_join(struct writer *writer);

#endif
