// The thread that has the live sockets: it tells readers what was committed, as
// long as their credit lasts.  A reader without credit, or one that does not
// read, misses records and gets their number; other readers are not affected.  What it sends
// it reads from the store, so its memory does not grow with what is stored.
#ifndef INFERSTAT_COLLECTOR_SERVICES_LIVE_H
#define INFERSTAT_COLLECTOR_SERVICES_LIVE_H

#include "common/core/base/error.h"
#include "server/collector/services/endpoints.h"
#include "server/collector/threads/commit_notifier.h"

struct live;

struct live_config {
    const struct endpoints *endpoints;
    const char *path; // of the store
    struct commit_notifier *commit_notifier;
};

MUST_CHECK enum status live_start(struct live **out, const struct live_config *config,
                                  struct error *err);

// Ends the thread.  NULL is fine.
void live_stop(struct live *live);

#endif
