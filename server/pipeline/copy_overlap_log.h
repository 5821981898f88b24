// Copy/compute overlap of single chunks: computes how much of each copy ran concurrently with
// kernels, for the log; overlap.h computes that of a whole run.  No I/O, no clock.
//
// Copies are added in order and do not overlap each other, nor do kernels, since a stream
// executes one at a time.  The last COPY_OVERLAP_LOG_SIZE copies and kernels are kept; older
// copies that were not popped are dropped.
#ifndef INFERSTAT_SERVER_PIPELINE_COPY_OVERLAP_LOG_H
#define INFERSTAT_SERVER_PIPELINE_COPY_OVERLAP_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { COPY_OVERLAP_LOG_SIZE = 64 };

struct copy_overlap {
    uint64_t chunk;
    double start_ns, end_ns;
    double beside_ns; // part of it that overlapped with kernels
};

// All zero: empty.
struct copy_overlap_log {
    struct copy_overlap copies[COPY_OVERLAP_LOG_SIZE];
    uint64_t copies_in, copies_out; // added, popped or dropped
    struct {
        double start_ns, end_ns;
    } computes[COPY_OVERLAP_LOG_SIZE];
    uint64_t computes_in;
};

void copy_overlap_log_add_copy(struct copy_overlap_log *log, uint64_t chunk, double start_ns,
                               double end_ns);
void copy_overlap_log_add_compute(struct copy_overlap_log *log, double start_ns, double end_ns);

// Pops the oldest copy if its overlap is final: a kernel that ended after it has been added, or
// `none_comes` promises that no kernel started before now remains to be added.  Returns false
// when there is none.
bool copy_overlap_log_pop(struct copy_overlap_log *log, bool none_comes, struct copy_overlap *out);

#endif
