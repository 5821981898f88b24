// The collector: starts and stops the writer, ingest, query and live threads, which share one
// store and listen at up to ENDPOINTS_MAX addresses.
#ifndef INFERSTAT_COLLECTOR_COLLECTOR_H
#define INFERSTAT_COLLECTOR_COLLECTOR_H

#include "common/core/base/error.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/services/endpoints.h"
#include "server/collector/threads/limits.h"

struct collector;

struct collector_config {
    struct address listen[ENDPOINTS_MAX];
    unsigned listen_count;
    const char *db;     // the store; a missing folder is created
    bool db_is_default; // a default path: missing parent folders are created, too
    // The collector's own keys: all TCP is CURVE, restricted to authorized keys.  NULL:
    // TCP is unencrypted and open to every peer.
    const struct wire_keypair *keys;
    const char *authorized_keys;
    const char *files_under; // folder for files named over TCP; NULL or empty: none
    struct limits limits;
    struct retention_rules retention;
    bool no_rollups;
};

// Locks the store and each ipc folder, opens everything and starts the threads.  When it
// returns, producers and readers are served.  Fails with STATUS_BUSY when another collector
// uses the store or an address.  A failure leaves no new lock file behind.
MUST_CHECK enum status collector_start(struct collector **out,
                                       const struct collector_config *config, struct error *err);

// Reloads the authorized keys if their file has changed.  Call it every second.
void collector_poll(struct collector *collector);

// Reloads the authorized keys.  On failure the previous ones stay.
MUST_CHECK enum status collector_reload(struct collector *collector, struct error *err);

// True if the ingest and writer threads had a heartbeat within the last `within_ns`.
bool collector_is_alive(struct collector *collector, uint64_t within_ns);

// Commits and acknowledges received records, then stops.  Accepts NULL.
void collector_stop(struct collector *collector);

#endif
