// How far a host's wall clock is from its collector's, learned from
// acknowledgements.  The host sent a batch at t1 and had its answer at t4, by its
// own clock; the collector answered at t2 by its own: so the offset, host less
// collector, lies between t1 - t2 and t4 - t2.  Each answer narrows that down;
// time widens it again, since clocks drift.  Cristian's algorithm, with bounds
// kept as intervals (Marzullo).
#ifndef INFERSTAT_CORE_CLOCK_OFFSET_H
#define INFERSTAT_CORE_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

// All zero: nothing is known.
struct clock_offset {
    bool known;
    int64_t low_ns, high_ns; // the offset lay between them at `at_ns`
    uint64_t at_ns;          // monotonic
    int64_t wall_ns;         // host's wall clock then; 0: never looked at
    uint64_t settled_ns;     // monotonic; answers before then are not looked at
};

// An answer arrived: sent_ns, received_ns by the host's wall clock, answered_ns by
// the collector's, now_ns by the host's monotonic one.  What cannot be (times of no
// possible year, an answer before the question) is ignored; one that contradicts
// the estimate starts a new estimate.  Where the host's clock was set since the last answer nothing
// is known for ten seconds: questions from before are still under way.
void clock_offset_take(struct clock_offset *offset, int64_t sent_ns, int64_t answered_ns,
                       int64_t received_ns, uint64_t now_ns);

// The middle of what is possible now, and how wrong it can be, at least 1.  False
// when nothing is known, or what is known is worth nothing any longer (an error
// beyond an hour).
bool clock_offset_estimate(const struct clock_offset *offset, uint64_t now_ns, int64_t *offset_ns,
                           int64_t *error_ns);

#endif
