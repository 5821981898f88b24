// The writer's jobs other than producers' messages: saving baselines, applying imports, and saving
// the counters of rejected messages.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_JOBS_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_JOBS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/threads/import_request.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/queue.h"
#include "server/collector/threads/reject_counters.h"
#include "server/collector/writer/writer_insert.h"
#include "server/collector/writer/writer_runs.h"

struct rollups;
struct sqlite3;

// Runs a JOB_BASELINE in a transaction of its own, notes it (admin_log.h), and queues the reply in
// `replies`.
void writer_baseline(struct sqlite3 *db, struct job *job, struct queue *replies);

// Applies the request's batch in a transaction of its own, updates the cached ids of `inserter` and
// `runs`, tells `rollups` (NULL: none) of new records, and completes the request.
void writer_import(struct sqlite3 *db, struct inserter *inserter, struct runs *runs,
                   struct rollups *rollups, struct import_request *request);

// Adds the counts by reason to the SQL table `refusal` in the current transaction.
MUST_CHECK enum status writer_save_refusals(struct sqlite3 *db,
                                            const uint64_t counts[REFUSAL_COUNT], int64_t now_ns,
                                            struct error *err);

#endif
