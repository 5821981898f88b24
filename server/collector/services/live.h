// The live thread, a publish-subscribe service with credit-based flow control: sends committed
// records, or on request only their highest ids, to subscribed readers (dashboards).  A reader's
// credit is the number of messages that it has asked for.  Without credit it misses records and is
// told how many; other readers are not affected.  Records are read from the store when sent.
#ifndef INFERSTAT_COLLECTOR_SERVICES_LIVE_H
#define INFERSTAT_COLLECTOR_SERVICES_LIVE_H

#include "common/core/base/error.h"
#include "server/collector/services/admission.h"
#include "server/collector/threads/channels.h"

struct live;

// `path` is the store's file.  All arguments are borrowed until live_stop.
MUST_CHECK enum status live_start(struct live **out, const struct endpoints *endpoints,
                                  const char *path, struct channels *channels, struct error *err);

// Stops the thread.  Accepts NULL.
void live_stop(struct live *live);

#endif
