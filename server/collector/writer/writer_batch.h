// Applies producers' messages to the store and acknowledges them after the group's commit.
// Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_BATCH_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_BATCH_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/access/access.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/limits.h"
#include "server/collector/writer/writer_insert.h"
#include "server/collector/writer/writer_runs.h"

struct batches;

// All arguments are borrowed.  Acks are queued in channels->acks.
MUST_CHECK enum status batches_new(struct batches **out, struct runs *runs,
                                   struct inserter *inserter, const unsigned char store[16],
                                   struct channels *channels, struct error *err);
void batches_free(struct batches *batches);

// Sets access control (borrowed; NULL: no keys, the default) and limits (LIMITS_DEFAULT by
// default).
void batches_set_rules(struct batches *batches, struct access *access, const struct limits *limits);

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
