// Query planner for rollups: selects the rollups and the records that answer a time window.  Pure.
//
// Cuts the window into consecutive pieces: inside, the coarsest whole buckets without gaps; finer
// ones at the edges; records where no rollup fits.  So a year consists of a dozen months, some
// days, hours and minutes at either end, and the records of two minutes, however many records there
// are.
//
// If records of a piece have expired, the finest available bucket replaces them as a whole, even if
// it extends beyond the window; the plan reports that.
#ifndef INFERSTAT_STORE_ROLLUP_ROLLUP_PLAN_H
#define INFERSTAT_STORE_ROLLUP_ROLLUP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/rollup/rollup.h"

// A period, inclusive at both ends.
struct rollup_span {
    int64_t first_ns, last_ns;
};

struct rollup_question {
    struct rollup_span window; // first_ns <= last_ns
    // Length of a time step; steps start at its multiples, and no bucket spans two steps.  0: one
    // step.  The window has at most a few thousand steps.
    int64_t step_ns;
    const struct gap_set *gaps;
    int64_t expired_ns; // records that started before it have expired; INT64_MIN: none
};

// Whole buckets of one level inside `span`, or its records (is_raw).
struct rollup_piece {
    struct rollup_span span;
    bool is_raw;
    enum rollup_level level; // of buckets
};

struct rollup_plan {
    struct rollup_piece *pieces; // ascending and disjoint
    size_t count, room;
    // Whether whole buckets replace expired records, and their coarsest level; whether some expired
    // records have no replacement.
    enum rollup_level widened_to;
    bool is_widened, is_lacking;
};

// Makes the plan.  Fails only with STATUS_NOMEM.  `*plan` is zeroed, or an earlier plan whose
// memory is reused.
MUST_CHECK enum status rollup_plan_make(struct rollup_plan *plan,
                                        const struct rollup_question *question);
void rollup_plan_deinit(struct rollup_plan *plan);

#endif
