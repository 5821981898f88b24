// Clearing (common/store/retention/clear.h) for an administrator who waits for the answer, a slice
// at a time.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_WRITER_CLEAR_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_WRITER_CLEAR_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/queue.h"

struct rollups;
struct sqlite3;
struct writer_clear;

// What it works with; borrowed.
struct writer_clear_parts {
    struct sqlite3 *db;
    struct rollups *rollups; // are told what goes; NULL: none are made
    struct queue *replies;
};

MUST_CHECK enum status writer_clear_new(struct writer_clear **out,
                                        const struct writer_clear_parts *parts, struct error *err);
// What is under way ends here; who waits is told.  NULL is fine.
void writer_clear_free(struct writer_clear *clear);

// Takes over a JOB_CLEAR.  While one is under way another is refused.
void writer_clear_begin(struct writer_clear *clear, struct job *job);

// Whether one is under way.
bool writer_clear_is_busy(const struct writer_clear *clear);

// Does a slice of it, outside of any transaction; after the last one answers.
void writer_clear_step(struct writer_clear *clear);

#endif
