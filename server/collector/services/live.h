// The live thread: publishes committed records to subscribed readers, flow-controlled by the
// readers' credit.  A reader without credit misses records and gets their count; other readers
// are not affected.  Records are read from the store, so memory does not grow with its size.
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

// Stops the thread.  Accepts NULL.
void live_stop(struct live *live);

#endif
