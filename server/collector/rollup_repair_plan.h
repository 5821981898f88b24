// What there is to make again of a kind whose records were cleared: which span, what of it
// is made from records, and which coarser rows (parents) count it, from which rows or
// records.  Only looks, but for the gap of an hour that cannot be made.  Writer thread only;
// inside of a transaction of the caller's where that is said.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_REPAIR_PLAN_H
#define INFERSTAT_COLLECTOR_ROLLUP_REPAIR_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "common/store/gap_table.h"
#include "common/store/rollup.h"
#include "server/collector/rollup_merge.h"

struct sqlite3;

// A day or month that the span touches; or the hour in which records have expired up to
// some minute.
struct rollup_parent {
    enum rollup_level level;
    struct gap_span span;
    // By child: the groupings in which it is not kept, and is read as records.
    unsigned missing[ROLLUP_CHILDREN_MAX];
    unsigned groupings; // to be made again
};

enum { ROLLUP_PARENTS_MAX = 4 };

// Zeroed: of nothing.
struct rollup_repair_plan {
    struct sqlite3 *db;
    enum record_kind kind;
    int64_t expired_ns;
    struct gap_span span;
    struct gap_span made;                             // what of it is made from records
    struct gap_set kept_apart[ROLLUP_GROUPING_COUNT]; // gaps, but those of what was cleared
    unsigned given_up; // groupings in which the hour of expiry's edge cannot be made
    struct rollup_parent parents[ROLLUP_PARENTS_MAX]; // days before months
    unsigned parent_count;
};

void rollup_repair_plan_deinit(struct rollup_repair_plan *plan);

// Plans the last span of the kind before a time, `*found` where there is one: an hour with
// records, or a time without any; it has no parents yet.  What was planned before is
// forgotten.
MUST_CHECK enum status rollup_repair_plan_span(struct rollup_repair_plan *plan, struct sqlite3 *db,
                                               enum record_kind kind, int64_t before_ns,
                                               bool *found, struct error *err);

// Reads the gaps again, after some were added.
MUST_CHECK enum status rollup_repair_plan_gaps(struct rollup_repair_plan *plan, struct error *err);

// Plans the parents, in a transaction.
MUST_CHECK enum status rollup_repair_plan_parents(struct rollup_repair_plan *plan,
                                                  struct error *err);

// Whether records have expired in a part of the span: then it is an hour.
bool rollup_repair_plan_is_at_edge(const struct rollup_repair_plan *plan);

// A span's last time: that whose end is that of 64 bits has it in.
int64_t rollup_span_last(const struct gap_span *span);

#endif
