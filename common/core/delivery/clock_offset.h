// Clock offset estimator: how far a host's wall clock is ahead of its collector's (Cristian's
// algorithm, with Marzullo's interval bounds).  For each message to the collector, the caller
// passes the times of the message and of its answer.  No clock, no I/O.
//
// The host sends a message at t1 and receives the answer at t4, both by its own clock.  The
// collector answers at t2 by its clock.  So the offset is between t1 - t2 and t4 - t2.  Each answer
// narrows this interval.  The interval widens with time, since clocks drift.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// All zero: unknown.  Only this module sets the members.
struct clock_offset {
    bool known;              // the bounds are valid
    int64_t low_ns, high_ns; // bounds of the offset at `at_ns`
    uint64_t at_ns;          // host's monotonic clock at the last answer
    int64_t wall_ns;         // host's wall clock at `at_ns`; 0: never read
    uint64_t settled_ns;     // monotonic: answers before this time do not make the offset known
};

// Adds an answer: sent_ns and received_ns by the host's wall clock, answered_ns by the
// collector's, now_ns by the host's monotonic clock.  Ignores an answer with invalid times (an
// impossible year, received before sent).  An answer that contradicts the estimate starts a new
// estimate.  If the host's clock was set since the last answer, the offset is unknown for ten
// seconds, because answers to older messages may still arrive.
void clock_offset_add_sample(struct clock_offset *offset, int64_t sent_ns, int64_t answered_ns,
                             int64_t received_ns, uint64_t now_ns);

// Sets `*offset_ns` to the interval's midpoint at `now_ns`, and `*error_ns` to its half-width (at
// least 1).  Returns false if the offset is unknown or the half-width is above an hour.
bool clock_offset_estimate(const struct clock_offset *offset, uint64_t now_ns, int64_t *offset_ns,
                           int64_t *error_ns);
