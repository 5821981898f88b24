// Which rollups and which records answer a window of time.  Pure.
//
// The window is cut into pieces that follow each other: the coarsest buckets that lie
// in it whole and that no gap forbids, finer ones at their sides, and records where
// there are no rollups.  So a year takes a dozen months, some days, hours and minutes
// at either end, and the records of two minutes, however many there are.
//
// Where records would be read that have expired, the finest rollup there is stands in
// for them whole, also where it reaches over the end of the window; the plan says so.
#ifndef INFERSTAT_STORE_ROLLUP_PLAN_H
#define INFERSTAT_STORE_ROLLUP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/store/rollup.h"

// Times from the first to the last, both of them in.
struct rollup_span {
    int64_t first_ns, last_ns;
};

// From where to where a level, and all finer ones, are not kept (rollup_gap_covers).
struct rollup_gap {
    struct rollup_span span;
    enum rollup_level level;
};

struct rollup_question {
    struct rollup_span window; // first_ns <= last_ns
    // Steps begin at multiples of it, and no bucket reaches over two; 0: one step.
    // Of a window of at most some thousand steps.
    int64_t step_ns;
    const struct rollup_gap *gaps; // in any order; they may overlap
    size_t gap_count;
    int64_t expired_ns; // records started before are not there; INT64_MIN: all are
};

// Buckets of one level that start in `span` and end in it, or records of it.
struct rollup_piece {
    struct rollup_span span;
    bool is_raw;
    enum rollup_level level; // of buckets
};

struct rollup_plan {
    struct rollup_piece *pieces; // rising, apart from each other
    size_t count, room;
    // The finest level that was taken whole in place of expired records, and whether any
    // was; whether there were expired records with nothing in their place.
    enum rollup_level widened_to;
    bool is_widened, is_lacking;
};

// STATUS_NOMEM is the only failure.  `*plan` is the caller's, zeroed; its memory is
// used again by the next plan that is made in it.
MUST_CHECK enum status rollup_plan_make(struct rollup_plan *plan,
                                        const struct rollup_question *question);
void rollup_plan_deinit(struct rollup_plan *plan);

// The start of the step that holds a time; INT64_MIN where that is before 64 bits.
int64_t rollup_step(int64_t step_ns, int64_t time_ns);

#endif
