// The collector: one writer, one ingest, one query and one live thread over one
// store and any number of addresses.
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
    const char *files_under; // files named over TCP are below it; NULL or empty: none are
    struct limits limits;
    struct retention_rules retention;
    bool no_rollups;
};

// Takes the locks of the store and of each ipc folder, opens everything, and
// starts.  When it returns, producers and readers are served.
// STATUS_BUSY: another collector has the store or an address.  After a refusal
// no lock file is there that was not before.
MUST_CHECK enum status collector_start(struct collector **out,
                                       const struct collector_config *config, struct error *err);

// To be called every second: looks whether the authorized keys have changed.
void collector_look(struct collector *collector);

// Reads the authorized keys again.  On failure those of before stay.
MUST_CHECK enum status collector_reload(struct collector *collector, struct error *err);

// Whether the threads that take records in and write them have taken a turn within
// the last `within_ns`.
bool collector_is_alive(struct collector *collector, uint64_t within_ns);

// Commits what has arrived, acknowledges it, and ends.  NULL is fine.
void collector_stop(struct collector *collector);

#endif
