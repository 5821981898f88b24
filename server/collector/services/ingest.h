// The ingest thread: decodes producers' messages, queues them for the writer, and sends the
// writer's acknowledgements.
//
// Backpressure: while the writer's inbox is full it receives nothing, ZeroMQ's bounded queues
// fill, and producers keep their records.  Peers are served round-robin, one message each;
// messages of a peer far beyond its credit (peer_credit.h) are dropped.
#ifndef INFERSTAT_COLLECTOR_SERVICES_INGEST_H
#define INFERSTAT_COLLECTOR_SERVICES_INGEST_H

#include "common/core/base/error.h"
#include "server/collector/services/endpoints.h"
#include "server/collector/threads/queue.h"
#include "server/collector/threads/reject_counters.h"

struct ingest;

struct ingest_config {
    const struct endpoints *endpoints;
    struct queue *inbox;        // struct job, for the writer
    struct queue *acks;         // struct answer, from the writer
    const unsigned char *store; // its UUID, 16 bytes
    struct reject_counters *reject_counters;
    struct peer_credit *peer_credit;
};

MUST_CHECK enum status ingest_start(struct ingest **out, const struct ingest_config *config,
                                    struct error *err);

// Time of the thread's last heartbeat (monotonic).  Any thread.
uint64_t ingest_heartbeat_ns(struct ingest *ingest);

// Makes the thread stop receiving and queue JOB_STOP for the writer.
void ingest_stop(struct ingest *ingest);

// After the writer has ended: sends the remaining acknowledgements, closes the sockets and
// joins the thread.  Accepts NULL.
void ingest_join(struct ingest *ingest);

#endif
