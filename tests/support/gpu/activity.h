// What a device did by its driver's own account (a trace), beside what the pipeline's
// timeline says of the same run.  Pure.
//
// Figures are found another way than the timeline finds them: all starts and ends of a
// trace in order of time, and a count of what runs between each and the next.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/pipeline/overlap.h"

struct activity {
    enum overlap_side side;
    uint64_t start_ns, end_ns;
};

struct activity_figures {
    uint64_t busy_ns[OVERLAP_SIDES]; // at least one of the side ran
    uint64_t both_ns;
};

// Of at most ACTIVITY_MAX, in any order, which may lie over each other.  Those that end
// before they start count as nothing.
enum { ACTIVITY_MAX = 1 << 14 };
void activity_sum(const struct activity *list, size_t count, struct activity_figures *out);

// How far the timeline is from the trace: the largest of copy and compute, each as a share
// of itself, and of both at once, as a share of the shorter side (so that it is how far the
// overlap ratio is off).  Infinite where the trace has nothing of a side and the timeline
// has something.
double activity_error(const struct activity_figures *trace, const struct overlap_figures *timeline);
