// Query planner for rollups: selects the rollups and the records that answer a query over a time
// window.  A rollup is a stored aggregate of the records in one bucket (a minute, hour, day or
// month: its level; rollup.h).  A gap is a period for which a level must not be used.  No I/O.
//
// The plan cuts the window into consecutive pieces.  It uses the coarsest buckets that lie inside
// the window and have no gap, finer ones at both edges, and records where no bucket fits.  A year
// is answered by a dozen months, some days, hours and minutes, and the records of two minutes.
// Records that are in no rollup yet (ids above the watermark) are no part: the caller adds them.
//
// Where records of a piece have expired, the plan uses the finest available bucket as a whole, even
// if it extends beyond the window, and sets `is_widened`.
#pragma once

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

// Input of the planner.
struct rollup_question {
    struct rollup_span window; // first_ns <= last_ns
    // Length of a time step; steps start at its multiples.  0: the window is one step.  No bucket
    // spans two steps, unless it replaces expired records.  At most a few thousand steps.
    int64_t step_ns;
    const struct gap_set *gaps; // borrowed during the call
    // Records that started before this time may have been deleted by retention; INT64_MIN: none.
    int64_t expired_ns;
};

// Covers `span`: with whole buckets of one level, or with its records (is_raw).
struct rollup_piece {
    struct rollup_span span;
    bool is_raw;
    enum rollup_level level; // of buckets
};

struct rollup_plan {
    struct rollup_piece *pieces;  // ascending and disjoint
    size_t count, room;           // pieces used and allocated
    bool is_widened;              // whole buckets replace expired records
    enum rollup_level widened_to; // the coarsest level of these buckets, if is_widened
    bool is_lacking;              // no bucket replaces some of the expired records
};

// Makes the plan.  `*plan` is zeroed, or an earlier plan whose memory is reused.  The only error is
// STATUS_NOMEM.
MUST_CHECK enum status rollup_plan_make(struct rollup_plan *plan,
                                        const struct rollup_question *question);
void rollup_plan_deinit(struct rollup_plan *plan);
