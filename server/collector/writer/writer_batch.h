// Applies producers' messages to the store and acknowledges them after the group's commit.
// Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_BATCH_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_BATCH_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/access/access.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/limits.h"
#include "server/collector/threads/queue.h"
#include "server/collector/threads/reject_counters.h"
#include "server/collector/writer/writer_insert.h"
#include "server/collector/writer/writer_runs.h"

struct batches;

// All arguments are borrowed.  Acks are queued in `acks` as struct answer.
MUST_CHECK enum status batches_new(struct batches **out, struct runs *runs,
                                   struct inserter *inserter, const unsigned char store[16],
                                   struct queue *acks, struct error *err);
void batches_free(struct batches *batches);

// Access control and limits; by default there are no keys, and the limits are LIMITS_DEFAULT.
// The pointers are borrowed and may be NULL.
struct batches_rules {
    struct access *access;
    struct reject_counters *reject_counters;
    struct peer_credit *peer_credit;
    struct limits limits;
};
void batches_set_rules(struct batches *batches, const struct batches_rules *rules);

// Begins a group: resets its count of records.
void batches_begin(struct batches *batches);

// Applies a Hello, Batch or Goodbye.  Fails only with the store, or when out of memory; an
// invalid message is answered with an error.
MUST_CHECK enum status batches_apply(struct batches *batches, const struct job *job,
                                     struct error *err);

// Records inserted in this group.
uint32_t batches_records(const struct batches *batches);

// After the commit: queues the group's Acks, one for all messages of a run on one route; each
// Hello, and each message of an unknown run, has its own.
void batches_send_acks(struct batches *batches);

// After a rollback: discards the group's Acks.
void batches_drop_acks(struct batches *batches);

#endif
