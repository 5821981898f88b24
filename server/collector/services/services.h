// The collector's services: a thread each, which owns the sockets of its service (admission.h).
#pragma once

#include "common/core/base/error.h"
#include "server/collector/services/admission.h"
#include "server/collector/threads/channels.h"

// The ingest thread: decodes producers' messages, queues them for the writer, and sends the
// writer's acknowledgements.
//
// Backpressure: while the writer's inbox is full, the thread takes no messages, so that the
// sockets' bounded memory fills up (listener.h), and producers keep their records.  A message is
// dropped if its peer is far beyond its credit (peer_credit.h) or its owner has exceeded a quota
// (quota.h).  Owners, and the connections of each owner, are served in turns of 64 KiB.
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

// The query thread: answers readers' queries and administrators' commands.  It reads the store
// through a read-only SQLite connection of its own, so that it never blocks ingest.  It cancels a
// query after 4 s.  It passes longer queries and imports to worker threads (query_worker.h), and
// other changes of the store to the writer thread.
struct query_service;

// `path` is the store's file.  `files_under` is the folder of the files that may be named over
// TCP (files_under.h); empty: none may be named.  All arguments are borrowed until
// query_service_stop.
MUST_CHECK enum status query_service_start(struct query_service **out,
                                           const struct endpoints *endpoints, const char *path,
                                           const char *files_under, struct channels *channels,
                                           struct error *err);

// Stops the thread.  Accepts NULL.
void query_service_stop(struct query_service *service);

// The live thread, a publish-subscribe service with credit-based flow control: sends committed
// records, or on request only their highest ids, to subscribed readers (dashboards).  A reader's
// credit is the number of messages that it has asked for.  Without credit it misses records and is
// told how many; other readers are not affected.  Records are read from the store when sent.
struct live;

// `path` is the store's file.  All arguments are borrowed until live_stop.
MUST_CHECK enum status live_start(struct live **out, const struct endpoints *endpoints,
                                  const char *path, struct channels *channels, struct error *err);

// Stops the thread.  Accepts NULL.
void live_stop(struct live *live);
