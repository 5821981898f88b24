// Rate limiter: limits the share of the writer thread's time that rollups (pre-aggregated rows)
// take.  Under load the share is a twentieth, and rises to a seventh the more records the
// rollups lag behind; it is a fifth while the memtable is about to overflow.  It is a half at a
// low rate of records, and everything while no records come.
//
// No I/O; the caller passes the time.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_THROTTLE_H
#define INFERSTAT_COLLECTOR_ROLLUP_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zero-initialised.  All times are monotonic.
struct rollup_throttle {
    bool busy;                         // the thread has other work; set by the caller
    uint64_t lag_rows;                 // number of records not in rollups yet; set by the caller
    bool light;                        // the rate of records is low
    uint64_t heard_ns;                 // when records came last
    uint64_t counted_ns, counted_rows; // records since `counted_ns`, to compute the rate
    uint64_t rest_ns;                  // under load no work before this time
};

// Counts `rows` incoming records.
void rollup_throttle_hear(struct rollup_throttle *throttle, size_t rows, uint64_t now_ns);

// True if the rate of records is low and the thread has no other work.
bool rollup_throttle_is_light(const struct rollup_throttle *throttle);

// True if no records came for half a second and the thread has no other work.
bool rollup_throttle_is_quiet(const struct rollup_throttle *throttle, uint64_t now_ns);

// True if a step of work is allowed now.
bool rollup_throttle_allows(const struct rollup_throttle *throttle, uint64_t now_ns);

// Accounts for a step of work.
void rollup_throttle_worked(struct rollup_throttle *throttle, uint64_t began_ns, uint64_t ended_ns);

#endif
