// Computes how much of each copy overlapped with kernels, for log lines about single chunks;
// overlap.h has the figures of a whole run.  Pure.
//
// The intervals of each side are added in order and do not overlap each other, since a stream
// does one thing at a time.  Keeps the last COPY_OVERLAP_LOG_SIZE of each side; older copies
// that were not popped are dropped.
#ifndef INFERSTAT_SERVER_PIPELINE_COPY_OVERLAP_LOG_H
#define INFERSTAT_SERVER_PIPELINE_COPY_OVERLAP_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { COPY_OVERLAP_LOG_SIZE = 64 };

struct copy_overlap {
    uint64_t chunk;
    double start_ns, end_ns;
    double beside_ns; // overlapped with kernels
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

// Pops the oldest copy whose overlap is final: a kernel ended after it, or `none_comes` says
// that no further kernel started before now.  Returns false when there is none.
bool copy_overlap_log_pop(struct copy_overlap_log *log, bool none_comes, struct copy_overlap *out);

#endif
