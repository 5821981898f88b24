// The ingest thread: decodes producers' messages, queues them for the writer, and sends the
// writer's acknowledgements.
//
// Backpressure: while the writer's inbox is full, the thread takes no messages, so that the
// sockets' bounded memory fills up (listener.h), and producers keep their records.  A message is
// dropped if its peer is far beyond its credit (peer_credit.h) or its owner has exceeded a quota
// (quota.h).  Owners, and the connections of each owner, are served in turns of 64 KiB.
#ifndef INFERSTAT_COLLECTOR_SERVICES_INGEST_H
#define INFERSTAT_COLLECTOR_SERVICES_INGEST_H

#include "common/core/base/error.h"
#include "server/collector/services/admission.h"
#include "server/collector/threads/channels.h"

struct ingest;

// `store` is the store's UUID, 16 bytes.  All arguments are borrowed until ingest_join.
MUST_CHECK enum status ingest_start(struct ingest **out, const struct endpoints *endpoints,
                                    const unsigned char *store, struct channels *channels,
                                    struct error *err);

// Makes the thread stop receiving and queue channels->stop for the writer.
void ingest_stop(struct ingest *ingest);

// Sends the remaining acknowledgements, closes the sockets and joins the thread.  Call it after
// the writer has ended.  Accepts NULL.
void ingest_join(struct ingest *ingest);

#endif
