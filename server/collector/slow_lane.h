// The thread for queries that take minutes: audits, comparisons, copies, and reading what
// a baseline is to keep.  One at a time, with a reading connection of its own, while all
// other queries go on being answered.
#ifndef INFERSTAT_COLLECTOR_SLOW_LANE_H
#define INFERSTAT_COLLECTOR_SLOW_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "server/collector/queue.h"
#include "server/collector/work.h"

enum {
    SLOW_LANE_BUDGET_SECONDS = 120,
    SLOW_LANE_COPY_SECONDS = 3600, // of a copy, which is made once and for long
};

// What the store's log may grow by while one reads, which keeps it from being used again.
#define SLOW_LANE_LOG_BYTES      (INT64_C(1) << 30)
#define SLOW_LANE_COPY_LOG_BYTES (INT64_C(8) << 30)

struct slow_lane;

// Whether queries of the kind belong here.
bool slow_lane_takes(enum query_kind kind);

// Starts the thread.  `path` is the store's file, `inbox` the writer's, `replies` where
// answers go; all are borrowed until slow_lane_stop.
MUST_CHECK enum status slow_lane_start(struct slow_lane **out, const char *path,
                                       struct queue *inbox, struct queue *replies,
                                       struct error *err);

// Hands over a query, to be answered later; QUERY_BASELINE_SAVE by the writer, which is
// handed what there is to keep.  A file that it names is to lie below the folder `below`
// (files_under.h; borrowed until slow_lane_stop), or anywhere where that is NULL.
// STATUS_BUSY: one is at work.
MUST_CHECK enum status slow_lane_ask(struct slow_lane *lane, const struct work_return *to,
                                     const struct message_query *asked, const char *below,
                                     struct error *err);

// Ends the query at work, without an answer, and the thread.  NULL is fine.
void slow_lane_stop(struct slow_lane *lane);

#endif
