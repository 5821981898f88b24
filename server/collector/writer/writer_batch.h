// Ingest transaction: applies producers' messages (jobs of kind JOB_MESSAGE) to the store, in the
// transaction of the writer's group commit, and acknowledges them after it.  Writer thread only.
//
// For each group: batches_begin, batches_apply for each message, then after the commit
// batches_send_acks, or after a rollback batches_drop_acks.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/access/access.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/limits.h"
#include "server/collector/writer/writer_insert.h"
#include "server/collector/writer/writer_runs.h"

struct batches;

// All arguments are borrowed.  Acknowledgements (Acks) are queued in channels->acks.
MUST_CHECK enum status batches_new(struct batches **out, struct runs *runs,
                                   struct inserter *inserter, const unsigned char store[16],
                                   struct channels *channels, struct error *err);
void batches_free(struct batches *batches);

// Sets access control (borrowed; NULL, the default: keys are not checked, every producer is
// accepted) and limits (the default is LIMITS_DEFAULT).
void batches_set_rules(struct batches *batches, struct access *access, const struct limits *limits);

// Begins a group: resets the count of batches_records.
void batches_begin(struct batches *batches);

// Applies a Hello, Batch or Goodbye.  Fails only if the store fails or memory is out; an invalid
// message is answered with an error.
MUST_CHECK enum status batches_apply(struct batches *batches, const struct job *job,
                                     struct error *err);

// Returns the number of records inserted in this group.
uint32_t batches_records(const struct batches *batches);

// Queues the group's Acks; call it after the commit.  All messages of a run on one route share an
// Ack.  Each Hello, each rejected message and each message of an unknown run has an Ack of its own.
void batches_send_acks(struct batches *batches);

// Discards the group's Acks; call it after a rollback.
void batches_drop_acks(struct batches *batches);
