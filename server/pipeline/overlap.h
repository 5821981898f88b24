// Copy/compute overlap: from the busy intervals of a pipeline run's copies and kernels, computes
// how long both were busy at once, for the whole run and for each copy.  All times are on one
// clock.  No I/O.
//
// The overlap ratio is both_ns / min(busy_ns of copies, busy_ns of kernels) over the whole run.
// Intervals of a side (copies or kernels) are added in order of time.  If one starts before the
// side's previous one ends, its start is moved to that end.  Each new interval is intersected with
// the last OVERLAP_KEPT intervals of the other side.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { OVERLAP_KEPT = 1024 };

enum overlap_side { OVERLAP_COPY, OVERLAP_COMPUTE, OVERLAP_SIDES };

struct overlap_figures {
    uint64_t busy_ns[OVERLAP_SIDES]; // union of the side's intervals
    uint64_t both_ns;                // both sides were busy
    uint64_t exposed_copy_ns;        // copy ran, compute did not
    uint64_t idle_ns;                // neither ran, between the first start and the last end
    uint64_t span_ns;                // first start to last end
    uint64_t unmeasured;             // intervals whose times are unknown
};

// Writes both_ns / min(busy_ns).  Returns false, and writes nothing, when a side was never busy.
bool overlap_ratio(const struct overlap_figures *figures, double *out);

struct overlap_interval {
    uint64_t number; // as given to overlap_add
    int64_t start_ns, end_ns;
    uint64_t both_ns; // how long the other side was busy during the interval
};

// The intervals of a side, a ring: interval i of all that were added is at i modulo OVERLAP_KEPT.
struct overlap_ring {
    uint64_t added;
    struct overlap_interval intervals[OVERLAP_KEPT];
};

// The intervals of a run.  The caller zeroes the structure first, and adds the number of intervals
// that it could not measure to figures.unmeasured.  Only the functions below use the other members.
struct overlap {
    struct overlap_ring rings[OVERLAP_SIDES];
    struct overlap_figures figures; // so far; overlap_finish computes those that follow from others
    int64_t first_ns, last_ns;      // first start, last end; valid once an interval was added
    uint64_t popped;                // copies that overlap_pop_copy returned or skipped
};

// Adds one interval.  It only counts as unmeasured if it ends before its start; or if it starts
// before all kept intervals of the other side, and that side had more than OVERLAP_KEPT.
void overlap_add(struct overlap *overlap, enum overlap_side side, uint64_t number, int64_t start_ns,
                 int64_t end_ns);

// Pops the oldest copy if its both_ns is final.  It is final if the kernels added last ended with
// the copy or later, or if `none_comes` says that none that overlap it will be added.  Returns
// false if there is no such copy.  Skips copies that are no longer kept.
bool overlap_pop_copy(struct overlap *overlap, bool none_comes, struct overlap_interval *out);

// Writes the figures of all intervals so far.
void overlap_finish(const struct overlap *overlap, struct overlap_figures *out);
