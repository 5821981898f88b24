// Copy/compute overlap: computes how long copies and kernels of a pipeline run were busy at the
// same time, of the whole run and of single copies.  Its input is their busy intervals, whose times
// are on one clock.  No I/O.
//
// Overlap is |copy busy AND compute busy| / min(|copy busy|, |compute busy|) over the whole run.
// A stream executes one copy or one group of kernels at a time.  So the intervals of a side are
// added in order of time; one that starts before the end of the side's last counts from that end.
// Each new interval is compared with the last OVERLAP_KEPT of the other side.
#ifndef INFERSTAT_SERVER_PIPELINE_OVERLAP_H
#define INFERSTAT_SERVER_PIPELINE_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

enum { OVERLAP_KEPT = 1024 };

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

struct overlap_interval {
    uint64_t number; // as given to overlap_add
    int64_t start_ns, end_ns;
    uint64_t both_ns; // of it: the other side was busy as well
};

// The intervals of a side, a ring: interval i of all that were added is at i modulo OVERLAP_KEPT.
struct overlap_ring {
    uint64_t added;
    struct overlap_interval intervals[OVERLAP_KEPT];
};

// The intervals of a run.  The caller zeroes it before the first, and adds intervals that it could
// not measure to figures.unmeasured; only the functions below use the other members.
struct overlap {
    struct overlap_ring rings[OVERLAP_SIDES];
    struct overlap_figures figures; // so far; overlap_finish computes those that follow from others
    int64_t first_ns, last_ns;      // first start, last end; valid once an interval was added
    uint64_t popped;                // copies that overlap_pop_copy returned or skipped
};

// Adds one interval.  It counts as unmeasured if it ends before its start, or if it starts before
// all kept intervals of the other side and some of these have been dropped.
void overlap_add(struct overlap *overlap, enum overlap_side side, uint64_t number, int64_t start_ns,
                 int64_t end_ns);

// Pops the oldest copy if its both_ns is final.  It is final if kernels that ended after the copy
// have been added, or if `none_comes` says that no kernels that overlap it will be added.  Returns
// false if there is no such copy.  Skips copies that are no longer kept.
bool overlap_pop_copy(struct overlap *overlap, bool none_comes, struct overlap_interval *out);

// Writes the sums.
void overlap_finish(const struct overlap *overlap, struct overlap_figures *out);

#endif
