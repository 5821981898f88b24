// Copy/compute overlap of single chunks: computes how much of each copy ran concurrently with
// kernels, for the debug log.  overlap.h computes the overlap of a whole run.  No I/O.
//
// Copies and kernels are added in order of time.  A stream executes one at a time, so copies do not
// overlap each other, and kernels do not either.  All times are on one clock.  The log keeps the
// last COPY_OVERLAP_LOG_SIZE copies and as many kernels, and drops older ones; a dropped copy can
// no longer be popped.
#ifndef INFERSTAT_SERVER_PIPELINE_COPY_OVERLAP_LOG_H
#define INFERSTAT_SERVER_PIPELINE_COPY_OVERLAP_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { COPY_OVERLAP_LOG_SIZE = 64 };

struct copy_overlap {
    uint64_t chunk; // number of the copied chunk, as given to copy_overlap_log_add_copy
    double start_ns, end_ns;
    double beside_ns; // time of the copy during which kernels ran
};

// A log.  The caller zeroes it, which makes it empty; only the functions below use its members.
// `copies` and `computes` are rings: element i of all that were added is at i modulo their size.
struct copy_overlap_log {
    struct copy_overlap copies[COPY_OVERLAP_LOG_SIZE];
    uint64_t copies_in, copies_out; // `in`: copies added; `out`: copies popped or dropped
    struct {
        double start_ns, end_ns;
    } computes[COPY_OVERLAP_LOG_SIZE];
    uint64_t computes_in; // kernels added
};

void copy_overlap_log_add_copy(struct copy_overlap_log *log, uint64_t chunk, double start_ns,
                               double end_ns);
void copy_overlap_log_add_compute(struct copy_overlap_log *log, double start_ns, double end_ns);

// Pops the oldest copy if its overlap is final.  It is final if a kernel that ended after the copy
// has been added, or if `none_comes` says that no kernel that overlaps will be added.  Returns
// false if there is no such copy.
bool copy_overlap_log_pop(struct copy_overlap_log *log, bool none_comes, struct copy_overlap *out);

#endif
