// When copies and compute ran, and how much of it at once.  Pure: intervals in,
// figures out.
//
// Overlap is |copy busy AND compute busy| / min(|copy busy|, |compute busy|) over the
// whole run, from intervals on one clock.  Intervals come roughly in order of time;
// those that may still change the figures are held, at most OVERLAP_HELD of each side.
#ifndef INFERSTAT_SERVER_PIPELINE_OVERLAP_H
#define INFERSTAT_SERVER_PIPELINE_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"

enum { OVERLAP_HELD = 1024 };

enum overlap_side { OVERLAP_COPY, OVERLAP_COMPUTE, OVERLAP_SIDES };

struct overlap_figures {
    uint64_t busy_ns[OVERLAP_SIDES]; // union of its intervals
    uint64_t both_ns;
    uint64_t exposed_copy_ns; // copy ran, compute did not
    uint64_t idle_ns;         // neither ran, between the first start and the last end
    uint64_t span_ns;         // first start to last end
    uint64_t unmeasured;      // copies and groups whose times were not taken
};

// both / min(busy); false where a side was never busy (the ratio is null).
bool overlap_ratio(const struct overlap_figures *figures, double *out);

struct overlap;

// Fails with STATUS_NOMEM.
MUST_CHECK enum status overlap_new(struct overlap **out, struct error *err);
void overlap_free(struct overlap *overlap); // accepts NULL

// Adds one interval, in ns of one clock.  An end before its start, or a start before
// what is already settled, counts as unmeasured.  Never allocates: where more than
// OVERLAP_HELD would be held apart, the older half is settled.
void overlap_add(struct overlap *overlap, enum overlap_side side, int64_t start_ns, int64_t end_ns);
void overlap_add_unmeasured(struct overlap *overlap, uint64_t intervals);

// Nothing that starts before `ns` will come any more: what lies before is summed up
// and forgotten.
void overlap_settle(struct overlap *overlap, int64_t ns);

// Settles everything and computes the totals; the next interval starts empty.
void overlap_finish(struct overlap *overlap, struct overlap_figures *out);

#endif
