// How much of each copy ran beside kernels: for the log, where the figures of a run
// (overlap.h) are not fine enough.  Pure: intervals in, one line's figures out.
//
// Intervals of a side come in order and lie apart, as one stream does one thing at a
// time.  A bounded number is kept: what is asked for too late is lost.
#ifndef INFERSTAT_SERVER_PIPELINE_COPY_OVERLAP_LOG_H
#define INFERSTAT_SERVER_PIPELINE_COPY_OVERLAP_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { COPY_OVERLAP_LOG_SIZE = 64 };

struct copy_overlap {
    uint64_t chunk;
    double start_ns, end_ns;
    double beside_ns; // of it, while kernels ran
};

// Zero: empty.  The oldest of what is counted have made room for the last HIDDEN_KEPT.
struct copy_overlap_log {
    struct copy_overlap copies[COPY_OVERLAP_LOG_SIZE];
    uint64_t copies_in, copies_out; // counted
    struct {
        double start_ns, end_ns;
    } computes[COPY_OVERLAP_LOG_SIZE];
    uint64_t computes_in;
};

void copy_overlap_log_add_copy(struct copy_overlap_log *log, uint64_t chunk, double start_ns,
                               double end_ns);
void copy_overlap_log_add_compute(struct copy_overlap_log *log, double start_ns, double end_ns);

// Takes the oldest copy that no compute to come can change: one has ended behind it, or
// `none_comes` says that there is none before now.  False where there is none.
bool copy_overlap_log_pop(struct copy_overlap_log *log, bool none_comes, struct copy_overlap *out);

#endif
