// The live thread: publishes committed records to subscribed readers, flow-controlled by the
// readers' credit.  A reader without credit misses records and gets their count; other readers
// are not affected.  Records are read from the store, so memory does not grow with its size.
#ifndef INFERSTAT_COLLECTOR_SERVICES_LIVE_H
#define INFERSTAT_COLLECTOR_SERVICES_LIVE_H

#include "common/core/base/error.h"
#include "server/collector/services/admission.h"
#include "server/collector/threads/channels.h"

struct live;

// `path` is the store's.  All arguments are borrowed until live_stop.
MUST_CHECK enum status live_start(struct live **out, const struct endpoints *endpoints,
                                  const char *path, struct channels *channels, struct error *err);

// Stops the thread.  Accepts NULL.
void live_stop(struct live *live);

#endif
