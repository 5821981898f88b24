// What a producer's message does to the store, and the Ack that answers it once
// the group it belongs to is committed.  Writer thread only.
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

// Everything is borrowed; acknowledgements go to `acks` as struct answer.
MUST_CHECK enum status batches_new(struct batches **out, struct runs *runs,
                                   struct inserter *inserter, const unsigned char store[16],
                                   struct queue *acks, struct error *err);
void batches_free(struct batches *batches);

// Permissions and limits; without them there are no keys and only the protocol's limits
// apply.  Borrowed members may be NULL.
struct batches_rules {
    struct access *access;
    struct reject_counters *reject_counters;
    struct peer_credit *peer_credit;
    struct limits limits;
};
void batches_set_rules(struct batches *batches, const struct batches_rules *rules);

// A group begins: nothing is to be acknowledged yet.
void batches_begin(struct batches *batches);

// Takes a Hello, Batch or Goodbye.  Fails only where the store (or memory) does;
// a message that makes no sense is answered.
MUST_CHECK enum status batches_take(struct batches *batches, const struct job *job,
                                    struct error *err);

// Records inserted since the group began.
uint32_t batches_records(const struct batches *batches);

// After the commit: one Ack a run, covering all its messages of the group.
void batches_send_acks(struct batches *batches);

// After a rollback: no Acks.
void batches_drop_acks(struct batches *batches);

#endif
