// Clock offset estimation: a host's wall clock minus its collector's, from acknowledgements
// (Cristian's algorithm, with interval bounds: Marzullo).  The host sent a batch at t1 and
// received the answer at t4 on its clock; the collector answered at t2 on its own clock: the
// offset is between t1 - t2 and t4 - t2.  Each answer narrows the interval; it widens with
// time, since clocks drift.
#ifndef INFERSTAT_CORE_CLOCK_OFFSET_H
#define INFERSTAT_CORE_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

// All zero: unknown.
struct clock_offset {
    bool known;
    int64_t low_ns, high_ns; // bounds of the offset at `at_ns`
    uint64_t at_ns;          // monotonic
    int64_t wall_ns;         // host's wall clock at `at_ns`; 0: never read
    uint64_t settled_ns;     // monotonic; answers before it are ignored
};

// Adds an answer: sent_ns and received_ns by the host's wall clock, answered_ns by the
// collector's, now_ns by the host's monotonic clock.  Invalid times (an impossible year,
// received before sent) are ignored; an answer that contradicts the estimate starts a new
// one.  If the host's clock was set since the last answer, the offset is unknown for ten
// seconds, while older requests are still in flight.
void clock_offset_add_sample(struct clock_offset *offset, int64_t sent_ns, int64_t answered_ns,
                             int64_t received_ns, uint64_t now_ns);

// Sets the interval's midpoint and half-width (at least 1) at `now_ns`.  False when the offset
// is unknown or the half-width is above an hour.
bool clock_offset_estimate(const struct clock_offset *offset, uint64_t now_ns, int64_t *offset_ns,
                           int64_t *error_ns);

#endif
