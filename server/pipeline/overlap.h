// Copy/compute overlap: computes how long copies and kernels of a pipeline run were busy at the
// same time.  Its input is their busy intervals, whose times are on one clock.  No I/O.
//
// Overlap is |copy busy AND compute busy| / min(|copy busy|, |compute busy|) over the whole run.
// Intervals are added approximately in order of time.  Intervals that later ones may overlap are
// kept, at most OVERLAP_HELD of each side.  Earlier ones are settled: summed up and dropped.
#ifndef INFERSTAT_SERVER_PIPELINE_OVERLAP_H
#define INFERSTAT_SERVER_PIPELINE_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"

enum { OVERLAP_HELD = 1024 };

enum overlap_side { OVERLAP_COPY, OVERLAP_COMPUTE, OVERLAP_SIDES };

struct overlap_figures {
    uint64_t busy_ns[OVERLAP_SIDES]; // union of the side's intervals
    uint64_t both_ns;
    uint64_t exposed_copy_ns; // copy ran, compute did not
    uint64_t idle_ns;         // neither ran, between the first start and the last end
    uint64_t span_ns;         // first start to last end
    uint64_t unmeasured;      // intervals whose times are unknown
};

// Writes both_ns / min(busy_ns).  Returns false, and writes nothing, when a side was never busy.
bool overlap_ratio(const struct overlap_figures *figures, double *out);

struct overlap;

// Fails with STATUS_NOMEM.
MUST_CHECK enum status overlap_new(struct overlap **out, struct error *err);
void overlap_free(struct overlap *overlap); // accepts NULL

// Adds one interval.  An interval that ends before its start, or starts before the settled time,
// counts as unmeasured.  Never allocates: when more than OVERLAP_HELD intervals are kept, the
// older half is settled.
void overlap_add(struct overlap *overlap, enum overlap_side side, int64_t start_ns, int64_t end_ns);
void overlap_add_unmeasured(struct overlap *overlap, uint64_t intervals);

// Settles all time up to `ns`.  The caller must not add an interval that starts before `ns` later.
void overlap_settle(struct overlap *overlap, int64_t ns);

// Settles everything, writes the sums and resets `overlap` for the next run.
void overlap_finish(struct overlap *overlap, struct overlap_figures *out);

#endif
