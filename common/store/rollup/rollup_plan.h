// Plans which rollups and which records answer a window of time.  Pure.
//
// Cuts the window into consecutive pieces: the coarsest whole buckets inside it that no gap
// forbids, finer ones at the edges, and records where there are no rollups.  So a year takes
// a dozen months, some days, hours and minutes at either end, and the records of two minutes,
// however many records there are.
//
// Where records have expired, the finest rollup there is replaces them as a whole, even if it
// extends beyond the window; the plan says so.
#ifndef INFERSTAT_STORE_ROLLUP_ROLLUP_PLAN_H
#define INFERSTAT_STORE_ROLLUP_ROLLUP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/store/rollup/rollup.h"

// From the first to the last time, both inclusive.
struct rollup_span {
    int64_t first_ns, last_ns;
};

// A period without a level and all finer ones (rollup_gap_covers).
struct rollup_gap {
    struct rollup_span span;
    enum rollup_level level;
};

struct rollup_question {
    struct rollup_span window; // first_ns <= last_ns
    // Steps start at multiples of it, and no bucket spans two; 0: one step.  The window has at
    // most a few thousand steps.
    int64_t step_ns;
    const struct rollup_gap *gaps; // in any order; may overlap
    size_t gap_count;
    int64_t expired_ns; // records that started before have expired; INT64_MIN: none
};

// Whole buckets of one level inside `span`, or the records of it.
struct rollup_piece {
    struct rollup_span span;
    bool is_raw;
    enum rollup_level level; // of buckets
};

struct rollup_plan {
    struct rollup_piece *pieces; // rising and disjoint
    size_t count, room;
    // Whether whole buckets replace expired records, and the coarsest level of these; whether
    // there are expired records that nothing replaces.
    enum rollup_level widened_to;
    bool is_widened, is_lacking;
};

// Fails only with STATUS_NOMEM.  `*plan` is zeroed, or an earlier plan whose memory is
// reused.
MUST_CHECK enum status rollup_plan_make(struct rollup_plan *plan,
                                        const struct rollup_question *question);
void rollup_plan_deinit(struct rollup_plan *plan);

// The start of the step that holds a time; INT64_MIN if that is below 64 bits.
int64_t rollup_step(int64_t step_ns, int64_t time_ns);

#endif
