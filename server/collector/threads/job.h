// What the collector's threads hand each other.
#ifndef INFERSTAT_COLLECTOR_THREADS_JOB_H
#define INFERSTAT_COLLECTOR_THREADS_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/wire/message.h"
#include "common/wire/socket.h"
#include "server/collector/threads/peer_credit.h"

struct baseline;
struct queue;

// Where an answer goes: which of the sockets (one for each address), and whom.
struct job_return {
    unsigned socket;
    struct wire_route route;
};

enum job_kind {
    JOB_MESSAGE,  // Hello, Batch or Goodbye
    JOB_CLEAR,    // an administrator's query
    JOB_BASELINE, // another: a baseline to keep or to forget
    JOB_IMPORT,   // records of another store
    JOB_STOP,     // nothing will follow
};

// For the writer.
struct job {
    enum job_kind kind;
    struct job_return from;
    bool has_key; // false: the sender went by permission, or without a guard
    unsigned char key[WIRE_KEY_SIZE];
    int64_t received_ns;    // collector's wall clock
    struct message message; // JOB_MESSAGE
    struct peer_credit_peer
        *peer; // the peer that its credit, this many records, belongs to; or NULL
    uint32_t records;
    struct query_filter filter;   // JOB_CLEAR
    uint64_t query_id;            // JOB_CLEAR, JOB_BASELINE
    struct query *query;          // JOB_BASELINE; owned
    struct import_request *order; // JOB_IMPORT; of the thread that waits for it
    struct baseline *baseline;    // JOB_BASELINE: to keep; owned; NULL: one is to be forgotten
};

void job_free(void *job); // NULL is fine

// Work for a query that changes baselines; takes `baseline` (may be NULL) over in any
// case.  NULL when out of memory.
struct job *job_of_baseline(const struct job_return *from, const struct message_query *asked,
                            struct baseline *baseline);

// Hands the writer a query's work, which it answers; takes `work` over in any case, and
// NULL for a want of memory.  STATUS_BUSY: the writer is behind.
MUST_CHECK enum status job_hand(struct queue *inbox, struct job *job, struct error *err);

// An encoded answer, for the thread that has the socket.
struct answer {
    struct job_return to;
    size_t size;
    unsigned char *bytes;
};

void answer_free(void *answer); // NULL is fine

// Encodes `message` as an answer; NULL when out of memory.
struct answer *answer_encode(const struct job_return *to, const struct message *message);

#endif
