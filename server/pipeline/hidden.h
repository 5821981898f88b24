// How much of each copy ran beside kernels: for the log, where the figures of a run
// (overlap.h) are not fine enough.  Pure: intervals in, one line's figures out.
//
// Intervals of a side come in order and lie apart, as one stream does one thing at a
// time.  A bounded number is kept: what is asked for too late is lost.
#ifndef INFERSTAT_SERVER_PIPELINE_HIDDEN_H
#define INFERSTAT_SERVER_PIPELINE_HIDDEN_H

#include <stdbool.h>
#include <stdint.h>

enum { HIDDEN_KEPT = 64 };

struct hidden_copy {
    uint64_t chunk;
    double start_ns, end_ns;
    double beside_ns; // of it, while kernels ran
};

// Zero: empty.  The oldest of what is counted have made room for the last HIDDEN_KEPT.
struct hidden {
    struct hidden_copy copies[HIDDEN_KEPT];
    uint64_t copies_in, copies_out; // counted
    struct {
        double start_ns, end_ns;
    } computes[HIDDEN_KEPT];
    uint64_t computes_in;
};

void hidden_add_copy(struct hidden *hidden, uint64_t chunk, double start_ns, double end_ns);
void hidden_add_compute(struct hidden *hidden, double start_ns, double end_ns);

// Takes the oldest copy that no compute to come can change: one has ended behind it, or
// `none_comes` says that there is none before now.  False where there is none.
bool hidden_next(struct hidden *hidden, bool none_comes, struct hidden_copy *out);

#endif
