// What the collector's threads hand each other.
#ifndef INFERSTAT_COLLECTOR_WORK_H
#define INFERSTAT_COLLECTOR_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query.h"
#include "common/wire/message.h"
#include "common/wire/socket.h"
#include "server/collector/share.h"

struct baseline;
struct queue;

// Where an answer goes: which of the sockets (one for each address), and whom.
struct work_return {
    unsigned socket;
    struct wire_route route;
};

enum work_kind {
    WORK_MESSAGE,  // Hello, Batch or Goodbye
    WORK_CLEAR,    // an administrator's query
    WORK_BASELINE, // another: a baseline to keep or to forget
    WORK_IMPORT,   // records of another store
    WORK_STOP,     // nothing will follow
};

// For the writer.
struct work {
    enum work_kind kind;
    struct work_return from;
    bool has_key; // false: the sender went by permission, or without a guard
    unsigned char key[WIRE_KEY_SIZE];
    int64_t received_ns;     // collector's wall clock
    struct message message;  // WORK_MESSAGE
    struct share_peer *peer; // whose share it takes, with so many records; or NULL
    uint32_t records;
    struct query_filter filter; // WORK_CLEAR
    uint64_t query_id;          // WORK_CLEAR, WORK_BASELINE
    struct query *query;        // WORK_BASELINE; owned
    struct import_order *order; // WORK_IMPORT; of the thread that waits for it
    struct baseline *baseline;  // WORK_BASELINE: to keep; owned; NULL: one is to be forgotten
};

void work_free(void *work); // NULL is fine

// Work for a query that changes baselines; takes `baseline` (may be NULL) over in any
// case.  NULL when out of memory.
struct work *work_of_baseline(const struct work_return *from, const struct message_query *asked,
                              struct baseline *baseline);

// Hands the writer a query's work, which it answers; takes `work` over in any case, and
// NULL for a want of memory.  STATUS_BUSY: the writer is behind.
MUST_CHECK enum status work_hand(struct queue *inbox, struct work *work, struct error *err);

// An encoded answer, for the thread that has the socket.
struct answer {
    struct work_return to;
    size_t size;
    unsigned char *bytes;
};

void answer_free(void *answer); // NULL is fine

// Encodes `message` as an answer; NULL when out of memory.
struct answer *answer_encode(const struct work_return *to, const struct message *message);

#endif
