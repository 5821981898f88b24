// The thread that has the ingest sockets: it decodes what producers send, hands
// it to the writer, and sends the writer's acknowledgements.
//
// While the writer is behind, it receives nothing, and ZeroMQ's bounded queues
// push back to the producers, who keep their records.  Peers are received from in
// turn, a message each; one that sends far beyond its credit is not listened to until
// what it sent is dealt with.
#ifndef INFERSTAT_COLLECTOR_SERVICES_INGEST_H
#define INFERSTAT_COLLECTOR_SERVICES_INGEST_H

#include "common/core/base/error.h"
#include "server/collector/services/endpoints.h"
#include "server/collector/threads/queue.h"
#include "server/collector/threads/reject_counters.h"

struct ingest;

struct ingest_config {
    const struct endpoints *endpoints;
    struct queue *inbox;        // struct work, for the writer
    struct queue *acks;         // struct answer, from the writer
    const unsigned char *store; // 16 bytes
    struct reject_counters *reject_counters;
    struct peer_credit *peer_credit;
};

MUST_CHECK enum status ingest_start(struct ingest **out, const struct ingest_config *config,
                                    struct error *err);

// When the thread last took a turn (monotonic).  Any thread.
uint64_t ingest_beaten_ns(struct ingest *ingest);

// Tells the thread to receive no more and to pass JOB_STOP to the writer.
void ingest_stop(struct ingest *ingest);

// Once the writer has ended: sends what acknowledgements are left, closes the
// sockets and waits for the thread.  NULL is fine.
void ingest_join(struct ingest *ingest);

#endif
