// Rate limiter: limits the share of the writer thread's time that work on rollups (pre-aggregated
// rows) takes.  The share depends on the load:
//
//   quiet (no records come, no other work)           all of the time
//   light (a low rate of records, no other work)     a half
//   otherwise, by lag_rows, the records not in rollups yet:
//     from 131072 to 262143                          a fifth
//     all other numbers                              a twentieth at 0, rising to a seventh at
//                                                    65536 and above
//
// 131072 records fill a memtable, the buffer in memory of records that are not in rollups yet
// (rollup_memtable.h).  Records that do not fit must be read from the store, at a higher cost.
//
// No I/O; the caller passes the time.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_THROTTLE_H
#define INFERSTAT_COLLECTOR_ROLLUP_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zero-initialised by the caller.  All times are monotonic.
struct rollup_throttle {
    // Set by the caller.
    bool busy;         // the thread has other work
    uint64_t lag_rows; // number of records not in rollups yet
    // Private.
    bool light;                        // the last computed rate was below 20,000 records a second
    uint64_t heard_ns;                 // when records came last
    uint64_t counted_ns, counted_rows; // number of records since `counted_ns`, to compute the rate
    uint64_t rest_ns;                  // no work before this time, unless quiet
};

// Counts `rows` incoming records.
void rollup_throttle_hear(struct rollup_throttle *throttle, size_t rows, uint64_t now_ns);

// True if the rate of records is low and the thread has no other work.
bool rollup_throttle_is_light(const struct rollup_throttle *throttle);

// True if no records came for half a second and the thread has no other work.
bool rollup_throttle_is_quiet(const struct rollup_throttle *throttle, uint64_t now_ns);

// True if a step of work is allowed now.
bool rollup_throttle_allows(const struct rollup_throttle *throttle, uint64_t now_ns);

// Accounts for a step of work: call it after each, with `lag_rows` updated.
void rollup_throttle_worked(struct rollup_throttle *throttle, uint64_t began_ns, uint64_t ended_ns);

#endif
